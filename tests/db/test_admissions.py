"""Admissions by the database: their clock, their locks, and how they are deleted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from unittest import mock

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import OperationalError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from django_hitcount.db import admissions, sql
from django_hitcount.db.admissions import (
    MICROSECONDS_PER_DAY,
    NotLocked,
    is_due,
    prune_admissions,
)
from django_hitcount.db.sql import Clock
from django_hitcount.db.tables import Admission
from tests import children
from tests.answers import failing_at_first, lost_commit_answer
from tests.concurrency.board import Board
from tests.servers import wait_until
from tests.sessions import repeatable_read
from tests.throttles import BLINK, HOUR, admit, times

pytestmark = pytest.mark.django_db(transaction=True)


locks_rows = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite locks the database, not rows"
)


def clock() -> int:
    return ContentType.objects.values_list(Clock(), flat=True)[0]


@contextmanager
def clock_at(microseconds: int) -> Iterator[None]:
    """Stop the clock of the database."""

    def show(*args, **kwargs):
        return str(microseconds), []

    with mock.patch.multiple(Clock, as_postgresql=show, as_mysql=show, as_sqlite=show):
        yield


def shift(microseconds: int) -> None:
    """Shift the last admissions into the past."""
    Admission.objects.update(
        admitted_at=F("admitted_at") - microseconds, expires_at=F("expires_at") - microseconds
    )


def end_intervals() -> None:
    shift(HOUR * 1_000_000 + 1_000_000)


def statements(queries: CaptureQueriesContext) -> list[str]:
    words = [query["sql"].split()[0] for query in queries]
    return [word for word in words if word not in {"BEGIN", "COMMIT"}]


class TestDatabase:
    def test_refusal_costs_one_read(self):
        admit()
        with CaptureQueriesContext(connection) as queries:
            assert not admit()

        assert len(queries) == 1
        assert "FOR UPDATE" not in queries[0]["sql"]

    def test_new_name_costs_a_read_and_two_statements(self):
        with CaptureQueriesContext(connection) as queries:
            assert admit()

        assert statements(queries) == ["SELECT", "INSERT", "UPDATE"]

    def test_admission_costs_a_read_and_one_statement_or_two(self):
        admit()
        end_intervals()
        with CaptureQueriesContext(connection) as queries:
            assert admit()

        # MySQL and MariaDB cannot skip a locked row in an UPDATE.
        locking = ["SELECT"] if connection.vendor == "mysql" else []
        assert statements(queries) == ["SELECT", *locking, "UPDATE"]

    def test_rollback_gives_the_admission_back(self):
        for end in (lambda: None, end_intervals):
            end()
            with transaction.atomic():
                assert admit()
                assert not admit()
                transaction.set_rollback(True)
            assert admit()
            assert not admit()

    def test_commit_of_the_caller_keeps_it(self):
        with transaction.atomic():
            assert admit()

        assert not admit()

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
    @pytest.mark.parametrize("is_new", [True, False])
    def test_old_snapshot_of_the_caller_admits_no_second_one(self, is_new):
        """PostgreSQL may end the transaction instead."""
        if not is_new:
            admit()
            end_intervals()
        admitted = False
        with repeatable_read(), suppress(OperationalError), transaction.atomic():
            assert is_due("throttle:mail")
            assert children.run(admit) == 0
            admitted = admit()

        assert not admitted
        assert not admit()

    def test_autocommit_off_is_a_transaction_of_the_caller(self):
        connection.set_autocommit(False)
        try:
            assert admit()
            connection.rollback()
        finally:
            connection.set_autocommit(True)

        assert admit()

    def test_interval_is_over_only_when_the_clock_is_past_its_end(self):
        """The clock may show 1.5 s at 1.5009 s, and 3.0 s at 3.0000 s."""
        with clock_at(1_500_000):
            assert admit(seconds=1.5)
        with clock_at(3_000_000):
            assert not admit(seconds=1.5)
            assert not is_due("throttle:mail")
        with clock_at(3_000_001):
            assert is_due("throttle:mail")
            assert admit(seconds=1.5)

    def test_who_looked_too_early_looks_again(self):
        """Others may be admitted between the look without a lock and the one with it."""
        with mock.patch.object(admissions, "_read", return_value=None):
            with clock_at(1_500_000):
                assert [admit(seconds=1.5) for _ in range(2)] == [True, False]
            with clock_at(3_000_000):
                assert not admit(seconds=1.5)
            with clock_at(3_000_001):
                assert admit(seconds=1.5)

    def test_clock_that_was_set_back_costs_an_interval(self):
        """It begins when that is noticed, as it is unknown how near the last admission is."""
        with clock_at(9_000_000_000):
            assert admit(seconds=1.5)
        with clock_at(2_000_000):
            assert not admit(seconds=1.5)
            assert times() == (2_000_000, 3_500_000)
        with clock_at(3_500_000):
            assert not admit(seconds=1.5)
        with clock_at(3_500_001):
            assert admit(seconds=1.5)

    def test_clock_is_that_of_the_server_in_utc(self):
        before = time.time_ns() // 1_000_000 * 1000  # Whole milliseconds, as SQLite has it.

        assert before <= clock() <= time.time_ns() // 1000

    def test_clock_goes_on_within_a_transaction(self):
        with transaction.atomic():
            begun = clock()
            wait_until(lambda: clock() > begun, "a tick")

    @pytest.mark.parametrize("name", ["new", "old"])
    def test_who_waited_for_a_lock_stamps_the_time_after_it(self, name):
        """Otherwise its interval would be over when it begins, and another one begin at once."""
        admit("old")
        end_intervals()
        locked, asking = Board(1, 1), Board(1, 1)

        def wait_and_admit() -> None:
            # As on MariaDB before 10.6. Elsewhere only a new name makes others wait.
            features = type(connection.features)
            with (
                mock.patch.object(features, "has_select_for_update_skip_locked", False),
                mock.patch.object(NotLocked, "template", "(%(subquery)s FOR UPDATE)"),
            ):
                wait_until(lambda: locked.total() > 0, "the lock")
                asking.add(0, 0)
                assert admit(name, BLINK)

        # Fork before the lock: SQLite would take the parent's locks for those of the child.
        child = children.fork(wait_and_admit)
        with transaction.atomic():
            assert admit(name)
            locked.add(0, 0)
            wait_until(lambda: asking.total() > 0 and is_waiting(), "a caller that waits")
            waiting_at = clock()
            wait_until(lambda: clock() > waiting_at + 2 * BLINK * 1_000_000, "the interval")
            released_at = clock()
            transaction.set_rollback(True)
        assert children.wait_for(child) == 0

        assert Admission.objects.get(name=f"throttle:{name}").admitted_at >= released_at

    @locks_rows
    def test_callers_do_not_wait_for_one_that_is_being_admitted(self):
        admit()
        end_intervals()

        def be_refused() -> None:
            assert not admit()

        with transaction.atomic():
            assert admit()
            assert children.run(be_refused) == 0

    def test_transactions_of_several_callers_get_along(self):
        def admit_in_transactions() -> None:
            for _ in range(50):
                with transaction.atomic():
                    admit("mail", 0.001)

        pids = [children.fork(admit_in_transactions) for _ in range(4)]

        assert [children.wait_for(pid) for pid in pids] == [0] * 4

    def test_first_ones_at_once_are_one(self):
        admitted, ready = Board(8, 20), Board(8, 1)

        def admit_all(row: int) -> None:
            admit("warm")
            ready.add(row, 0)
            wait_until(lambda: ready.total() == 8, "the others")
            for at in range(20):
                admitted.add(row, at, admit(f"new {at}"))

        pids = [children.fork(lambda row=row: admit_all(row)) for row in range(8)]

        assert [children.wait_for(pid) for pid in pids] == [0] * 8
        assert [admitted.column(at) for at in range(20)] == [1] * 20

    def test_deadlock_is_tried_again(self):
        with failing_at_first(admissions, "_take", OperationalError("deadlock"), times=2):
            assert admit()

    def test_lost_answer_admits_no_caller(self):
        with lost_commit_answer(), pytest.raises(OperationalError):
            admit()

        assert not admit()

    def test_due_is_what_would_be_admitted(self):
        assert is_due("throttle:mail")
        admit()
        assert not is_due("throttle:mail")
        end_intervals()
        assert is_due("throttle:mail")


class TestPrune:
    def test_deletes_what_has_been_over_for_a_day(self):
        admit("old")
        shift(HOUR * 1_000_000 + MICROSECONDS_PER_DAY + 1_000_000)
        admit("not that old")
        admit("old, but its interval is not", 366 * 86400)
        Admission.objects.exclude(name="throttle:old").update(
            admitted_at=F("admitted_at") - MICROSECONDS_PER_DAY,
            expires_at=F("expires_at") - MICROSECONDS_PER_DAY,
        )

        assert prune_admissions() == 1
        assert not Admission.objects.filter(name="throttle:old").exists()
        assert prune_admissions() == 0

    def test_goes_in_pieces(self):
        Admission.objects.bulk_create(
            Admission(name=str(n), admitted_at=0, expires_at=n) for n in range(1100)
        )
        with CaptureQueriesContext(connection) as queries:
            assert prune_admissions() == 1100

        assert statements(queries) == ["SELECT", *["SELECT", "DELETE"] * 3, "SELECT"]

    def test_leaves_who_was_admitted_meanwhile(self):
        admit()
        shift(10 * MICROSECONDS_PER_DAY)
        in_transaction = sql.in_transaction

        def admit_first(*args, **kwargs):
            assert admit()
            return in_transaction(*args, **kwargs)

        with mock.patch.object(sql, "in_transaction", admit_first):
            assert prune_admissions() == 0
        assert not admit()


def is_waiting() -> bool:
    """Whether the server shows a session that waits for a lock; always true on SQLite."""
    shown = {
        "sqlite": "SELECT 1",
        "mysql": "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'",
        "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted",
    }
    with connection.cursor() as cursor:
        cursor.execute(shown[connection.vendor])
        return int(cursor.fetchone()[-1]) > 0
