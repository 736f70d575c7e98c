"""The ledger: each batch is written once, whoever writes it and in which order."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from django_hitcount.counters.batches import BatchId
from django_hitcount.db import ledger
from django_hitcount.db.tables import LastBatch

pytestmark = pytest.mark.django_db(transaction=True)

G = "0123456789ab:" + "7" * 32 + ":1"
SEVENTH = BatchId(3, G, 7)
A_MOMENT_SECONDS = 0.3
SECONDS = 60


def add(number: int, generation: str = G, partition: int = 3) -> bool:
    with transaction.atomic():
        return ledger.add_batch(BatchId(partition, generation, number))


def rows() -> set[tuple[int, str, int]]:
    return {*LastBatch.objects.values_list("partition", "generation", "number")}


def disconnecting(work: Callable[[], object]) -> Callable[[], object]:
    """``work`` for another thread, which closes its connection."""

    def run() -> object:
        try:
            return work()
        finally:
            connection.close()

    return run


class TestAddBatch:
    @pytest.mark.parametrize("is_opened", [True, False])
    @pytest.mark.parametrize(
        ("numbers", "added"),
        [
            ([1, 2, 3], [True, True, True]),
            ([1, 1], [True, False]),
            ([2, 1, 2, 3], [True, False, False, True]),
            ([10**15, 1], [True, False]),
        ],
    )
    def test_order(self, is_opened, numbers, added):
        """The row is missing after the table was emptied or restored."""
        if is_opened:
            ledger.open_generation(3, G)

        assert [add(number) for number in numbers] == added
        assert rows() == {(3, G, max(numbers))}

    def test_partitions_and_generations_are_apart(self):
        others = [(7, "other", 3), (7, G, 4), (1, G, 3)]

        assert all(add(*other) for other in others)
        assert not any(add(*other) for other in others)
        assert rows() == {(partition, name, n) for n, name, partition in others}

    def test_row_of_a_backup(self):
        """What was written after the backup is missing, and is written again."""
        add(7)
        LastBatch.objects.update(number=3)

        assert not add(3)
        assert add(7)

    def test_rollback(self):
        with transaction.atomic():
            assert ledger.add_batch(SEVENTH)
            transaction.set_rollback(True)

        assert rows() == set()
        assert add(7)

    @pytest.mark.parametrize("is_opened", [True, False])
    @pytest.mark.parametrize("is_committed", [True, False])
    @pytest.mark.parametrize("number", [6, 7, 8])
    def test_second_session_waits_for_the_first(self, is_opened, is_committed, number):
        if is_opened:
            ledger.open_generation(3, G)
        with ThreadPoolExecutor() as pool:
            with transaction.atomic():
                assert ledger.add_batch(SEVENTH)
                second = pool.submit(disconnecting(lambda: add(number)))
                with pytest.raises(TimeoutError):
                    second.result(A_MOMENT_SECONDS)
                transaction.set_rollback(not is_committed)
            added = second.result(SECONDS)

        assert added == (number > 7 or not is_committed)
        assert rows() == {(3, G, max(number, 7) if is_committed else number)}

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one lock for all")
    def test_row_that_another_flusher_opens_meanwhile(self):
        """The table was emptied, and Redis lost the sequence: both find no row."""
        insert = ledger._insert

        def insert_after_another(*args):
            ledger._insert = insert
            with ThreadPoolExecutor() as pool:
                pool.submit(disconnecting(lambda: ledger.open_generation(3, G))).result(SECONDS)
            return insert(*args)

        with mock.patch.object(ledger, "_insert", insert_after_another):
            assert add(7)
        assert not add(7)


class TestOpenGeneration:
    def test_row_is_added_once(self, django_assert_num_queries):
        for _ in range(2):
            with django_assert_num_queries(3):
                ledger.open_generation(3, G)

        assert rows() == {(3, G, 0)}
        assert LastBatch.objects.get().flushed_at is None

    def test_number_stays(self):
        add(7)
        ledger.open_generation(3, G)

        assert rows() == {(3, G, 7)}

    def test_longest_name_fits(self):
        name = "g" * LastBatch._meta.get_field("generation").max_length
        ledger.open_generation(3, name)

        assert add(1, name)
        assert rows() == {(3, name, 1)}


class TestReading:
    RUN = "0123456789ab"

    @pytest.fixture(autouse=True)
    def ledger(self):
        for partition, generation, number in [
            (3, f"{self.RUN}:a:1", 4),
            (3, f"{self.RUN}:b:1", 0),
            (4, f"{self.RUN}:a:1", 5),
            (3, f"{self.RUN}c:a:1", 6),
            (3, "unknown:a:1", 8),
            (3, "unkn_wn:a:1", 9),
        ]:
            LastBatch.objects.create(
                partition=partition, generation=generation, number=number, claim=10 * number
            )

    @pytest.mark.parametrize(
        ("runs", "found"),
        [
            ([], {}),
            ([(5, RUN)], {}),
            ([(3, RUN)], {(3, f"{RUN}:a:1"): 4, (3, f"{RUN}:b:1"): 0}),
            ([(4, RUN), (4, RUN)], {(4, f"{RUN}:a:1"): 5}),
            (
                [(4, RUN), (3, "unknown")],
                {(4, f"{RUN}:a:1"): 5, (3, "unknown:a:1"): 8},
            ),
            ([(3, "unkn_wn"), (3, "%")], {(3, "unkn_wn:a:1"): 9}),
        ],
    )
    def test_runs(self, runs, found, django_assert_num_queries):
        with django_assert_num_queries(1 if runs else 0):
            rows = ledger.read_runs(runs)
        assert rows == {row: (number, 10 * number) for row, number in found.items()}

    def test_applied_batches(self):
        name = f"{self.RUN}:a:1"
        batches = [BatchId(p, name, n) for p in (3, 4, 5) for n in (0, 4, 5, 6)]
        condition = ledger.match_batches(batches)
        found = {
            (p, generation): n
            for p, generation, n, _ in LastBatch.objects.filter(condition).values_list(
                *ledger.COLUMNS
            )
        }

        assert found == {(3, name): 4, (4, name): 5}
        applied = ledger.find_applied(batches, found)
        assert applied == {
            batch for batch in batches if batch.number <= {3: 4, 4: 5, 5: -1}[batch[0]]
        }

    def test_last_flush(self):
        assert ledger.read_last_flush() is None
        add(5, f"{self.RUN}:a:1")
        LastBatch.objects.update(flushed_at=F("flushed_at") - datetime.timedelta(hours=1))
        add(1, f"{self.RUN}:b:1")

        last = ledger.read_last_flush()
        assert last is not None
        assert abs(timezone.now() - last) < datetime.timedelta(minutes=1)
