"""A deleted salt is no longer in the file of its table."""

from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from django_hitcount.counters.days import day_of
from django_hitcount.db import salts
from django_hitcount.db.salts import SALT_BYTES, prune_salts, salt_of
from django_hitcount.db.tables import VisitorSalt
from django_hitcount.reading import get_visitors
from tests import settings as test_settings
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.concurrency.at_once import ask_at_once
from tests.concurrency.board import Board
from tests.servers import wait_until
from tests.visiting import forget_keys

pytestmark = pytest.mark.django_db(transaction=True)

DAY = datetime.timedelta(days=1)
TABLE = VisitorSalt._meta.db_table


def make_salts(days: range) -> list[bytes]:
    """Create salts with the given ages."""
    made = []
    for day in days:
        made.append(secrets.token_bytes(SALT_BYTES))
        made_at = timezone.now() - datetime.timedelta(days=day)
        VisitorSalt.objects.create(period=f"day {day}", salt=made[-1], made_at=made_at)
    return made


def grow_older(days: int) -> None:
    """Let days pass by the clock of the database."""
    VisitorSalt.objects.update(made_at=F("made_at") - datetime.timedelta(days=days))


def periods() -> set[str]:
    return {*VisitorSalt.objects.values_list("period", flat=True)}


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
    with connection.cursor() as cursor:
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


def test_next_salt_erases_old_ones_so_nobody_needs_to():
    old, kept = make_salts(range(3, 9)), make_salts(range(3))

    made = salt_of("2026-03-10")

    wait_until(lambda: found(old) == 0, "a file without old salts")
    assert {bytes(row.salt) for row in VisitorSalt.objects.all()} == {made, *kept}


@pytest.mark.parametrize("rotation", ["month", "never"])
def test_salt_of_a_month_is_kept_for_the_next_month(settings, rotation):
    settings.HITCOUNT = {"VISITOR_KEY_ROTATION": rotation}
    this_month = day_of().replace(day=1)
    last_month = (this_month - DAY).replace(day=1)
    for day in (this_month, last_month, last_month - DAY):
        noon = datetime.datetime.combine(day, datetime.time(12), timezone.get_default_timezone())
        VisitorSalt.objects.create(period=f"{day}", salt=b"x" * SALT_BYTES, made_at=noon)

    salt_of("the next one")

    assert periods() == {f"{this_month}", f"{last_month}", "the next one"}


@pytest.mark.parametrize("rotation", ["day", "month"])
def test_salt_that_was_made_just_before_its_period_is_kept_as_long(settings, rotation):
    """A page asks for the next key a minute before midnight."""
    settings.HITCOUNT = {**settings.HITCOUNT, "VISITOR_KEY_ROTATION": rotation}
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = today - datetime.timedelta(days=2)
    if rotation == "month":
        first = (today.replace(day=1) - datetime.timedelta(days=1)).replace(day=1)
    made_at = first - datetime.timedelta(seconds=30)
    VisitorSalt.objects.create(period="next", salt=b"x" * SALT_BYTES, made_at=made_at)

    assert prune_salts() == 0


def test_salt_of_never_is_kept_for_ever(settings):
    settings.HITCOUNT = {"VISITOR_KEY_ROTATION": "never"}
    made = salt_of("never")
    grow_older(4000)

    assert prune_salts() == 0
    assert salt_of("never") == made


def test_process_whose_clock_is_ahead_deletes_no_salt_in_use():
    made = salt_of("today")
    with time_machine.travel(timezone.now() + 400 * DAY):
        salt_of("ahead")

    assert salt_of("today") == made


def test_salt_of_a_process_whose_clock_was_ahead_goes_like_others():
    with time_machine.travel(timezone.now() + 400 * DAY):
        salt_of("ahead")
    grow_older(2)
    salt_of("two days later")
    assert periods() == {"ahead", "two days later"}

    grow_older(1)
    salt_of("three days later")
    assert periods() == {"two days later", "three days later"}


def test_salt_from_the_future_goes_if_the_database_was_ahead():
    """In autumn, a clock without time zone goes back by an hour."""
    make_salts([-400, 0])
    soon = timezone.now() + datetime.timedelta(hours=1)
    VisitorSalt.objects.create(period="soon", salt=b"x", made_at=soon)

    assert prune_salts() == 1
    assert periods() == {"day 0", "soon"}


def test_page_with_a_transaction_deletes_them_after_its_commit(client, settings, monkeypatch):
    settings.HITCOUNT = {"COUNTERS": {"views": {"visitors": True}}}
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    forget_keys()
    make_salts(range(3, 5))
    article = Article.objects.create(title="Tea")

    client.get(f"/articles/{article.pk}/", headers=BROWSER)

    assert periods() == {day_of().isoformat()}
    assert get_visitors(article, first_day=day_of(), last_day=day_of()) == 1


def test_salt_that_is_made_within_a_transaction_deletes_none():
    make_salts(range(3, 5))
    with transaction.atomic():
        salt_of("today")

    assert periods() == {"today", "day 3", "day 4"}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the database, not rows")
def test_locked_salts_are_left_to_another_time(caplog):
    """For example by a backup that locks tables; a page must not wait for it."""
    make_salts(range(3, 5))
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute(f"SELECT 1 FROM {TABLE} WHERE period = 'day 3' FOR UPDATE")
        begun = time.monotonic()
        salt_of("today")
        waited = time.monotonic() - begun
        cursor.execute("ROLLBACK")
    other.close()

    assert waited < 1
    assert "Old visitor salts are left to compact_hits, or the next salt" in caplog.text
    assert periods() == {"today", "day 3", "day 4"}
    salt_of("tomorrow")
    assert periods() == {"today", "tomorrow"}


def test_at_midnight_all_processes_find_the_same_salt():
    make_salts(range(3, 9))
    firsts = Board(16, 1)

    connection.close()
    ask_at_once(
        lambda number: firsts.add(number, 0, int.from_bytes(salt_of("midnight")[:4])),
        requests=16,
        processes=4,
    )

    assert periods() == {"midnight"}
    salt = int.from_bytes(salt_of("midnight")[:4])
    assert firsts.column(0) == 16 * salt


def test_nothing_to_delete_costs_no_rewriting(django_assert_num_queries):
    make_salts(range(3))

    # The clock, BEGIN, DELETE, COMMIT.
    with django_assert_num_queries(5 if connection.vendor == "sqlite" else 4):
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
