"""
The buffer in which no hit waits: it writes each hit to the slots at once.

Hits in doubt are those that Redis may have recorded or not. They are not written to the slots: the
database keeps a record of them until Redis is back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from django_hitcount.buffers.base import Buffer
from django_hitcount.counters import group_items, restore_order
from django_hitcount.counters.batches import Known, RecordResult
from django_hitcount.counters.hits import UNAVAILABLE, NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Number
from django_hitcount.db import seen_visitors, slots
from django_hitcount.db.tables import MissedRecord, hits_alias
from django_hitcount.db.transactions import (
    DATABASE_ERRORS,
    in_transaction,
    is_conflict,
    is_server_away,
    limit_waits,
)
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import Breaker, page_read_breaker
from django_hitcount.outages.waits import add_wait, seconds_waited

PATIENCE_SECONDS = 0.5
"""How long to retry a hit. After that, it is lost: the page matters more."""

PROBE_PATIENCE_SECONDS = 0.02
"""How long to retry a hit that probes whether the database is back. That is enough to notice that
the connection was closed, and to open another one."""

FIRST_LOCK_WAIT_SECONDS = 0.025
"""How long a hit waits for a locked row before it is tried in another slot. Each further try waits
twice as long."""

VISITOR_LOCK_WAIT_SECONDS = 2.0
"""How long a hit waits for other hits of the same visitor or address. Another slot would not help,
and only our own short transactions lock these rows."""

TRIES_AT_LOCKS = 3
"""How many slots to try at least."""

LOCKS = "Locks of other sessions"
"""The cause under which a page's waits for locks are added up. After such a wait, the page's next
hits try only one slot each."""

HURRY_SECONDS = 1.0
"""After a hit has waited for locks in vain, how long further hits try TRIES_AT_LOCKS slots only."""

MakeRecords = Callable[[Sequence[NewHits], Sequence[NewHits]], Iterable[MissedRecord]]
"""A function that makes rows for hits that are written, and for hits in doubt."""

Part = tuple[Sequence[NewHits], Sequence[NewHits]]
"""The hits that one transaction writes, and the hits in doubt that it makes records of."""

logger = logging.getLogger("django_hitcount")


class DatabaseBuffer(Buffer):
    """
    Writes each hit at once, into a random slot of HitSlot and the same slot of DailyHitSlot.

    Costs a transaction of two statements, and some more if visitors are identified: see
    seen_visitors.refuse_repeats(). The only task or command that must run is compact_hits: it keeps
    the tables small. base.py describes the methods of Buffer.
    """

    keeps_hits = False

    def __init__(self) -> None:
        self._breaker = Breaker("The database of django_hitcount", is_failure=_is_away)
        self._hurries_until = 0.0

    def record(
        self, hits: Sequence[NewHits], wanted: tuple[Number, ...] = ()
    ) -> tuple[list[RecordResult], Known]:
        return self.write(hits), Known()

    def write(
        self,
        hits: Sequence[NewHits],
        doubtful: Sequence[NewHits] = (),
        make_records: MakeRecords | None = None,
    ) -> list[RecordResult]:
        """
        Refuse repeats, write ``hits``, and save records of them and of the ``doubtful`` hits.

        Does all of this or nothing. But if rows of some counters stay locked, still writes the hits
        of the other counters. Returns a result for each of ``hits``, then for each doubtful one.
        """
        is_one_counter = len({hit.key for hit in (*hits, *doubtful)}) == 1
        try:
            return self._run(hits, doubtful, make_records, is_patient=is_one_counter)
        except DATABASE_ERRORS as exc:
            if is_one_counter or not is_conflict(exc):
                raise
            return self._write_apart(hits, doubtful, make_records)

    def _run(
        self,
        hits: Sequence[NewHits],
        doubtful: Sequence[NewHits],
        make_records: MakeRecords | None,
        *,
        is_patient: bool,
    ) -> list[RecordResult]:
        """Do the work of write() in one transaction. Each try uses another slot."""
        using, began_at, choices = hits_alias(), time.monotonic(), slots.choose_slots()
        has_waited = seconds_waited(LOCKS) > 0
        is_patient = is_patient and not has_waited and began_at >= self._hurries_until
        seconds_at_locks = PATIENCE_SECONDS if is_patient else 0
        lock_waits = (FIRST_LOCK_WAIT_SECONDS * 2**n for n in count())
        both = [*hits, *doubtful]
        has_visitors = any(hit.visitor for hit in both)

        def write() -> list[RecordResult]:
            slot, left = next(choices), began_at + seconds_at_locks - time.monotonic()
            lock_wait = max(min(next(lock_waits), left), FIRST_LOCK_WAIT_SECONDS)
            with limit_waits(using, seconds=VISITOR_LOCK_WAIT_SECONDS, is_at_begin=True):
                checked = seen_visitors.refuse_repeats(both)
            with limit_waits(using, seconds=lock_wait, is_at_begin=not has_visitors):
                sure, unsure = checked[: len(hits)], checked[len(hits) :]
                slots.check_locks(sure, slot=slot)
                slots.add_hits(sure, slot=slot)
                for record in make_records(sure, unsure) if make_records else ():
                    record.save(using=using, force_insert=True)
            return [RecordResult(None, hit.refusal) for hit in checked]

        with self._breaker.guard() as is_probe:
            while True:
                try:
                    return in_transaction(
                        write,
                        using=using,
                        patience_seconds=PROBE_PATIENCE_SECONDS if is_probe else PATIENCE_SECONDS,
                        seconds_at_locks=seconds_at_locks,
                        tries_at_locks=1 if has_waited else TRIES_AT_LOCKS,
                        repeatable=False,
                    )
                except seen_visitors.LimitReached:
                    continue  # The next try reads that the limit is reached.
                except DATABASE_ERRORS as exc:
                    now = time.monotonic()
                    if is_patient and is_conflict(exc):
                        self._hurries_until = now + HURRY_SECONDS
                    # So that the page does not wait for the same again.
                    cause = LOCKS if is_conflict(exc) else page_read_breaker().server
                    add_wait(cause, now - began_at)
                    raise

    def _write_apart(
        self, hits: Sequence[NewHits], doubtful: Sequence[NewHits], make_records: MakeRecords | None
    ) -> list[RecordResult]:
        """
        Write the hits of each counter in their own transaction, in lock order.

        Keeps the ``doubtful`` hits together, since one record holds all of them. If half a second
        is over when a counter meets a lock, does not try the next counters: then whole tables are
        locked, not rows.
        """
        keys = [hit.key for hit in hits]
        by_counter = sorted(group_items(keys, hits).items())
        parts: dict[CounterKey | None, Part] = {key: (group, ()) for key, group in by_counter}
        if doubtful:
            parts[None] = ((), doubtful)
        results: dict[CounterKey | None, list[RecordResult]] = {}
        ends_at = time.monotonic() + PATIENCE_SECONDS
        error, is_over, lost = None, False, 0
        for counter, part in parts.items():
            if not is_over:
                try:
                    results[counter] = self._run(*part, make_records, is_patient=False)
                    continue
                except (BufferUnavailable, *DATABASE_ERRORS) as exc:
                    error, is_over = exc, time.monotonic() >= ends_at
            refusals = [hit.refusal for group in part for hit in group]
            results[counter] = [RecordResult(None, name or UNAVAILABLE) for name in refusals]
            lost += refusals.count(None)
        if error:
            logger.error("%d hits are not counted: %s", lost, error)
        return restore_order([*keys, *[None] * len(doubtful)], results)


def _is_away(error: BaseException) -> bool:
    """Return whether the server is away. A statement that waited for a lock does not say so."""
    return is_server_away(error) and not is_conflict(error)
