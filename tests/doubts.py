"""Commands in doubt: what the database keeps of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django_hitcount.db.tables import MissedRecord


@contextmanager
def no_notes() -> Iterator[None]:
    """As if no command were in doubt, for those who looked before."""
    notes = [*MissedRecord.objects.all()]
    MissedRecord.objects.all().delete()
    yield
    MissedRecord.objects.bulk_create(notes)
