"""Pieces of an import: each is written, or taken back, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from django.db import models

from django_hitcount.buffers import get_buffer
from django_hitcount.counters import split
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.imports import Row
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import imports, slots
from django_hitcount.db.tables import Import, MissedRecord, hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS, in_transaction, limit_waits
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.importing.existing import make_named_rows
from django_hitcount.outages.missed_records import make_record_of_slots

PIECE_SIZE = 5000
"""Rows that one transaction writes: many enough that the COMMITs take little time, and few enough
to hold locks for a fraction of a second. Pages that meet one write into another slot."""

KEYS_PER_RECORD = 500
"""Counters of one MissedRecord: as many as one record command has."""

T = TypeVar("T")

logger = logging.getLogger("django_hitcount")


def write_piece(
    made: Import, rows: Sequence[Row], last_row: Sequence[object], strategy: str
) -> list[Row]:
    """
    Write what the tables lack of some rows, in one transaction. Return it.

    Before that, makes the rows of named objects among them.
    """
    make_named_rows({row.key[:2] for row in rows})
    using, choice = hits_alias(), slots.SlotChoice()
    missing: list[Row] = []
    records: list[MissedRecord] = []

    def write() -> None:
        with limit_waits(using, seconds=imports.LOCK_WAIT_SECONDS, is_at_begin=True):
            if imports.advance(made, last_row):
                missing[:] = imports.find_missing(rows, strategy, using=using)
                imports.write_piece(made, missing, slot=choice.next(), using=using)
                records[:] = _save_records(row.key for row in missing)

    _in_transaction(write)
    made.pieces += 1
    _discard_totals([row.key for row in missing], records)
    return missing


def _in_transaction(work: Callable[[], T]) -> T:
    return in_transaction(
        work,
        using=hits_alias(),
        patience_seconds=imports.PATIENCE_SECONDS,
        repeatable=True,
    )


def _save_records(keys: Iterable[CounterKey]) -> list[MissedRecord]:
    """Save which totals in Redis lack the hits, so that the next flush drops them if we do not."""
    if not get_buffer().keeps_hits:
        return []
    day, different = day_of(), [*dict.fromkeys(keys)]
    hits = [NewHits(key, day, 0) for key in different]
    records = [make_record_of_slots(some) for some in split(hits, KEYS_PER_RECORD)]
    for record in records:
        record.save(using=hits_alias(), force_insert=True)
    get_buffer().pause_totals(different)
    return records


def _discard_totals(keys: Iterable[CounterKey], records: Iterable[MissedRecord]) -> None:
    """Make Redis read totals again, and drop the records. Without Redis, do nothing."""
    if not get_buffer().keeps_hits:
        return
    try:
        get_buffer().discard_totals([*dict.fromkeys(keys)])
        pks = [record.pk for record in records]
        MissedRecord.objects.using(hits_alias()).filter(pk__in=pks).delete()
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.warning("The totals of an import are left to the next flush_hits: %s", exc)


def take_piece(made: Import, added: models.QuerySet[Any, Any], after: int) -> list[imports.Added]:
    """Take the next rows of ``added`` out of the tables, in one transaction. Return them."""
    using, choice = hits_alias(), slots.SlotChoice()
    taken: dict[int, imports.Added] = {}
    records: list[MissedRecord] = []

    def take() -> None:
        with limit_waits(using, seconds=imports.LOCK_WAIT_SECONDS, is_at_begin=True):
            slot = choice.next()
            rows = imports.take_piece(made, added, after, PIECE_SIZE, slot=slot, using=using)
            # If the answer to a COMMIT was lost, an earlier try has taken other rows.
            taken.update({row.pk: row for row in rows})
            records[:] = _save_records(map(imports.key_of, rows))

    _in_transaction(take)
    _discard_totals(map(imports.key_of, taken.values()), records)
    return [taken[pk] for pk in sorted(taken)]
