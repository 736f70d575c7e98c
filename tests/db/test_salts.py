"""A deleted salt is no longer in the file of its table."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_hitcount.db import salts
from django_hitcount.db.salts import SALT_BYTES, prune_salts
from django_hitcount.models import VisitorSalt
from tests import settings as test_settings
from tests.servers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = VisitorSalt._meta.db_table


def make_salts(days: range) -> list[bytes]:
    """Create salts with the given ages."""
    made = []
    for day in days:
        made.append(secrets.token_bytes(SALT_BYTES))
        made_at = timezone.now() - datetime.timedelta(days=day)
        VisitorSalt.objects.create(period=f"day {day}", salt=made[-1], made_at=made_at)
    return made


def pages_of_postgresql() -> bytes:
    with connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS pageinspect")
        cursor.execute(
            "SELECT get_raw_page(%s, number::int) FROM generate_series(0, "
            "pg_relation_size(%s) / current_setting('block_size')::int - 1) AS number",
            [TABLE, TABLE],
        )
        return b"".join(bytes(page) for (page,) in cursor.fetchall())


def file_of_innodb() -> bytes:
    database = str(connection.settings_dict["NAME"])
    directory = Path(test_settings.DIRECTORY, "mariadb", "data", database)
    with connection.cursor() as cursor:
        cursor.execute(f"FLUSH TABLES {TABLE} FOR EXPORT")
        try:
            return (directory / f"{TABLE}.ibd").read_bytes()
        finally:
            cursor.execute("UNLOCK TABLES")


def file_of_sqlite() -> bytes:
    return Path(connection.settings_dict["NAME"]).read_bytes()


def found(wanted: list[bytes]) -> int:
    """How many of some salts the file of the table holds, whether or not a query finds them."""
    read = {"postgresql": pages_of_postgresql, "mysql": file_of_innodb, "sqlite": file_of_sqlite}
    content = read[connection.vendor]()
    return sum(salt in content for salt in wanted)


@pytest.fixture(autouse=True)
def sqlite_as_most_have_it() -> Iterator[None]:
    """Debian's SQLite overwrites deleted rows; SQLite by default does not."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA secure_delete = OFF")
        yield
        cursor.execute("PRAGMA secure_delete = ON")


def test_old_salts_are_erased_and_the_others_stay():
    old, kept = make_salts(range(4, 14)), make_salts(range(3))
    assert (found(old), found(kept)) == (10, 3)

    assert prune_salts() == 10

    wait_until(lambda: found(old) == 0, "a file without old salts")  # InnoDB purges later.
    assert {bytes(row.salt) for row in VisitorSalt.objects.all()} == {*kept}
    assert found(kept) == 3


def test_salts_of_each_day_are_erased_on_their_day():
    made = []
    for _ in range(5):
        made += make_salts(range(4, 6))
        prune_salts()

    wait_until(lambda: found(made) == 0, "a file without old salts")


def test_nothing_to_delete_costs_no_rewriting(django_assert_num_queries):
    make_salts(range(3))

    with django_assert_num_queries(4 if connection.vendor == "sqlite" else 3):  # BEGIN, COMMIT.
        assert prune_salts() == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only there the table is rewritten")
def test_table_that_is_being_read_is_rewritten_another_time(caplog, monkeypatch):
    """Another session reads the table for a long time, as pg_dump does."""
    monkeypatch.setattr(salts, "PATIENCE_SECONDS", 0.2)
    old = make_salts(range(4, 8))
    reader = connection.copy()
    with reader.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT 1 FROM {TABLE}")
        assert prune_salts() == 4
        cursor.execute("ROLLBACK")
    reader.close()
    assert f"VACUUM FULL {TABLE}" in caplog.text
    assert found(old) == 4

    old += make_salts(range(4, 5))
    assert prune_salts() == 1
    assert found(old) == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only there the table is rewritten")
def test_old_snapshot_keeps_them_until_another_time():
    """The transaction might read them."""
    old = make_salts(range(4, 8))
    reader = connection.copy()
    with reader.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM app_article")
        assert prune_salts() == 4
        assert found(old) == 4
        cursor.execute("ROLLBACK")
    reader.close()

    old += make_salts(range(4, 5))
    assert prune_salts() == 1
    assert found(old) == 0


@pytest.mark.skipif(connection.vendor != "postgresql", reason="only there the table is rewritten")
def test_role_that_does_not_own_the_table_gets_an_error(caplog):
    old = make_salts(range(4, 8))
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("CREATE ROLE a_guest")
        cursor.execute(f"GRANT SELECT, DELETE ON {TABLE} TO a_guest")
    with connection.cursor() as cursor:
        cursor.execute("SET ROLE a_guest")
        try:
            assert prune_salts() == 4
        finally:
            cursor.execute("RESET ROLE")
            cursor.execute(f"REVOKE ALL ON {TABLE} FROM a_guest")
            cursor.execute("DROP ROLE a_guest")
    assert "must be owner" in caplog.text
    assert found(old) == 4
