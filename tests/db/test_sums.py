"""One statement reads the sums of slots and the ledger, and distinguishes their rows."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hitcount.counters.batches import BatchId
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import slots, sums
from django_hitcount.db.tables import LastBatch
from tests.tables import another_collation

GENERATION = "1" * 40 + ":0"


@pytest.fixture
def key(db):
    """A counter of a model whose content type has an id that a partition may have, too."""
    ContentType.objects.get_or_create(pk=1, defaults={"app_label": "tests", "model": "sums"})
    return CounterKey(1, "1", "views")


def add_to_ledger(batch_id):
    LastBatch.objects.create(**batch_id._asdict())


def test_rows_of_the_ledger_are_not_taken_for_sums(key):
    """Its partition may equal a content type id, and its numbers are no hits."""
    slots.add_totals({key: 3}, slot=0)
    slots.add_totals({key: 4}, slot=1)
    applied = BatchId(key.content_type_id, GENERATION, 9)
    add_to_ledger(applied)
    waiting = applied._replace(number=10)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = sums.read_sums([key], [applied, waiting])
    assert found == ({key: 7}, {applied})
    assert len(queries) == 1


def test_sums_are_not_taken_for_rows_of_the_ledger(key):
    """An object may have the id that a generation has."""
    key = key._replace(object_id="a" * 40)
    slots.add_totals({key: 9}, slot=0)
    batch_id = BatchId(key.content_type_id, key.object_id, 9)

    assert sums.read_sums([key], [batch_id]) == ({key: 9}, set())


def test_each_generation_has_a_last_batch_of_its_own(key):
    first, second = BatchId(0, "a:0", 5), BatchId(0, "b:0", 2)
    elsewhere = BatchId(1, "a:0", 1)
    for batch_id in (first, second, elsewhere):
        add_to_ledger(batch_id)
    later = [batch_id._replace(number=batch_id.number + 1) for batch_id in (first, second)]
    earlier = first._replace(number=1)

    _, applied = sums.read_sums([key], [first, second, elsewhere, earlier, *later])
    assert applied == {first, second, elsewhere, earlier}


@pytest.mark.skipif(connection.vendor != "mysql", reason="others convert no text to compare it")
@pytest.mark.django_db(transaction=True)
def test_tables_may_have_different_collations():
    key, batch_id = CounterKey(1, "1", "views"), BatchId(1, GENERATION, 9)
    with another_collation(LastBatch, "generation"):
        assert sums.read_sums([key], [batch_id]) == ({}, set())


def test_batches_of_all_partitions_and_runs_are_looked_for(key):
    """More than SQLite takes conditions."""
    slots.add_totals({key: 3}, slot=0)
    batches = [BatchId(p, f"{run}:{p}", 1) for p in range(1024) for run in range(2)]
    nameless = [BatchId(p, "", 0) for p in range(1024)]
    add_to_ledger(batches[5])

    found, applied = sums.read_sums([key], [*batches, *nameless])
    assert (found, applied) == ({key: 3}, {batches[5]})
