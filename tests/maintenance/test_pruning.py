"""How long flushes keep the ids of batches in the ledger."""

from __future__ import annotations

import datetime
import uuid
from unittest import mock

import pytest
from django.db import IntegrityError
from django.utils import timezone

from django_hitcount.db import slots
from django_hitcount.db.tables import FlushedBatch
from django_hitcount.maintenance.flushing import flush
from django_hitcount.recording import record_hit
from tests.app.models import Article

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(redis_buffer) -> Article:
    return Article.objects.create(title="Tea")


def test_ledger_is_pruned_even_if_a_partition_fails(article, monkeypatch):
    add_to_ledger([8, 9])
    record_hit(article)
    with (
        mock.patch.object(slots, "add_totals", side_effect=IntegrityError("x")),
        pytest.raises(ExceptionGroup),
    ):
        flush()

    assert ages_in_ledger() == [8]


def test_ledger_is_pruned_after_seven_days_but_for_the_last_batch(article):
    """A Redis that goes back in time offers at most that batch again."""
    add_to_ledger([30, 8, 6, 0])
    add_to_ledger([30, 20, 9])
    flush()

    assert ages_in_ledger() == [0, 6, 9]


def add_to_ledger(days):
    """Add batches of one new generation, flushed the given numbers of days ago."""
    generation = uuid.uuid4().hex
    FlushedBatch.objects.bulk_create(
        FlushedBatch(
            id=uuid.uuid4(),
            partition=3,
            generation=generation,
            number=number,
            flushed_at=timezone.now() - datetime.timedelta(days=day),
        )
        for number, day in enumerate(sorted(days, reverse=True))
    )


def ages_in_ledger():
    return sorted((timezone.now() - b.flushed_at).days for b in FlushedBatch.objects.all())
