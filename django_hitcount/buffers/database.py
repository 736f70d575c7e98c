"""The buffer without a wait: hits go straight into the slots."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.grouping import group_items, restore_order
from django_hitcount.counters.batches import RecordResult
from django_hitcount.counters.hits import AddressHash, NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.outcomes import UNAVAILABLE
from django_hitcount.db import locks, seen_visitors, slot_locks, slots
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import MissedRecord
from django_hitcount.db.transactions import DATABASE_ERRORS, LockPatience, in_transaction
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.breaker import Breaker
from django_hitcount.outages.failures import is_server_away
from django_hitcount.outages.page_reads import page_read_breaker
from django_hitcount.outages.waits import add_wait, seconds_waited

PATIENCE_SECONDS = 0.5
"""How long a hit is retried: it is worth less than the page that waits for it."""

PROBE_PATIENCE_SECONDS = 0.02
"""The same for a hit that probes whether the database is back: enough to notice that the
connection is stale, and to open another."""

FIRST_LOCK_WAIT_SECONDS = 0.025
"""How long a hit waits for a locked row before it goes to another slot; each further try waits
twice as long."""

VISITOR_LOCK_WAIT_SECONDS = 2.0
"""How long a hit waits for others of the same visitor or address: another slot does not help, and
only our own short transactions lock these rows."""

TRIES_AT_LOCKS = 3
"""Slots in which a hit is tried at least."""

LOCKS = "Locks of other sessions"
"""What a page waits for once: its next hits try one slot each."""

HURRY_SECONDS = 1.0
"""How long hits are tried in only that many slots after one has waited for locks in vain."""

MakeRecords = Callable[[Sequence[NewHits], Sequence[NewHits]], Iterable[MissedRecord]]
"""Makes rows for hits that are written, and for those that are left in doubt."""

Part = tuple[Sequence[NewHits], Sequence[NewHits]]
"""Hits that are written in one transaction, and those that it leaves in doubt."""

K = TypeVar("K", bound=Hashable)

logger = logging.getLogger("django_hitcount")


class DatabaseBuffer(Buffer):
    """
    Writes hits at once into a random slot of both tables.

    Costs a transaction of two statements, and some more where visitors are identified: see
    seen_visitors.refuse_repeats(). No task or command needs to run but compact_hits, which keeps
    the number of rows down.
    """

    keeps_hits = False

    def __init__(self) -> None:
        self._breaker = Breaker("The database of django_hitcount", is_failure=_is_away)
        self._hurries_until = 0.0

    def record(self, hits: Sequence[NewHits]) -> list[RecordResult]:
        return self.write(hits)

    def write(
        self,
        hits: Sequence[NewHits],
        doubtful: Sequence[NewHits] = (),
        make_records: MakeRecords | None = None,
    ) -> list[RecordResult]:
        """
        Refuse repeats, write the hits that are not ``doubtful``, and records of all, or nothing.

        If rows of some counters stay locked, the hits of the others are still written.
        Returns what became of each of ``hits``, then of each that is ``doubtful``.
        """
        is_one_counter = len({hit.key for hit in (*hits, *doubtful)}) == 1
        try:
            return self._run(hits, doubtful, make_records, is_patient=is_one_counter)
        except DATABASE_ERRORS as exc:
            if is_one_counter or not locks.is_conflict(exc):
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
        began_at = time.monotonic()
        has_waited = seconds_waited(LOCKS) > 0
        is_patient = is_patient and not has_waited and began_at >= self._hurries_until
        lock_patience = LockPatience(
            PATIENCE_SECONDS if is_patient else 0, tries=1 if has_waited else TRIES_AT_LOCKS
        )
        write = _Write(hits, doubtful, make_records, lock_patience.seconds)
        with self._breaker.guard() as is_probe:
            run = partial(
                in_transaction,
                write,
                using=hits_alias(),
                patience_seconds=PROBE_PATIENCE_SECONDS if is_probe else PATIENCE_SECONDS,
                lock_patience=lock_patience,
                repeatable=False,
            )
            while True:
                try:
                    return run()
                except seen_visitors.LimitReached as exc:
                    write.beyond.add(exc.address)
                except DATABASE_ERRORS as exc:
                    now = time.monotonic()
                    if is_patient and locks.is_conflict(exc):
                        self._hurries_until = now + HURRY_SECONDS
                    _remember_wait(exc, now - began_at)
                    raise

    def _write_apart(
        self, hits: Sequence[NewHits], doubtful: Sequence[NewHits], make_records: MakeRecords | None
    ) -> list[RecordResult]:
        """
        Write the hits of each counter in a transaction of their own, in lock order.

        The ``doubtful`` hits stay together, since one record holds all of them. After half a
        second, the first counter that meets a lock is the last to be tried: then tables are
        locked, not rows.
        """
        keys = [hit.key for hit in hits]
        by_counter = group_items(keys, hits)
        parts: dict[CounterKey | None, Part] = {
            counter: (by_counter[counter], ()) for counter in sorted(by_counter)
        }
        if doubtful:
            parts[None] = ((), doubtful)
        results: dict[CounterKey | None, list[RecordResult]] = {}
        ends_at = time.monotonic() + PATIENCE_SECONDS
        for counter, part in parts.items():
            try:
                results[counter] = self._run(*part, make_records, is_patient=False)
            except (BufferUnavailable, *DATABASE_ERRORS) as exc:
                is_over = time.monotonic() >= ends_at
                failed = parts.keys() - results.keys() if is_over else {counter}
                results |= _report_lost({key: parts[key] for key in failed}, exc)
                if is_over:
                    break
        return restore_order([*keys, *[None] * len(doubtful)], results)


def _report_lost(parts: Mapping[K, Part], error: Exception) -> dict[K, list[RecordResult]]:
    """Hits that are not counted, since nothing takes them in."""
    hits = [hit for sure, unsure in parts.values() for hit in (*sure, *unsure)]
    logger.error("%d hits are not counted: %s", sum(not hit.refusal for hit in hits), error)
    return {
        key: [RecordResult(None, hit.refusal or UNAVAILABLE) for hit in (*sure, *unsure)]
        for key, (sure, unsure) in parts.items()
    }


def _is_away(error: BaseException) -> bool:
    """A statement that met locks until its limit does not mean that the server is slow."""
    return is_server_away(error) and not locks.is_conflict(error)


def _remember_wait(error: BaseException, seconds: float) -> None:
    """Let the page not wait for the same again, and not read from a server that is away."""
    add_wait(LOCKS if locks.is_conflict(error) else page_read_breaker().server, seconds)


class _Write:
    """Refuses repeats and writes the other hits, in another slot at each call."""

    def __init__(
        self,
        hits: Sequence[NewHits],
        doubtful: Sequence[NewHits],
        make_records: MakeRecords | None,
        seconds_at_locks: float,
    ) -> None:
        self._hits = hits
        self._doubtful = doubtful
        self._make_records = make_records
        self._locks_until = time.monotonic() + seconds_at_locks
        self._lock_wait_seconds = FIRST_LOCK_WAIT_SECONDS
        self._choice = slots.SlotChoice()
        self.beyond: set[AddressHash] = set()
        """Addresses that reached their limit in an earlier try."""

    def __call__(self) -> list[RecordResult]:
        using = hits_alias()
        slot = self._choice.next()
        hits = [*self._hits, *self._doubtful]
        has_visitors = any(hit.visitor for hit in hits)
        with locks.limit_waits(using, seconds=VISITOR_LOCK_WAIT_SECONDS, is_at_begin=True):
            judged = seen_visitors.refuse_repeats(hits, self.beyond, using=using)
        with locks.limit_waits(using, seconds=self._next_lock_wait(), is_at_begin=not has_visitors):
            sure, unsure = judged[: len(self._hits)], judged[len(self._hits) :]
            slot_locks.check_locks(sure, slot=slot, using=using)
            slots.add_hits(sure, slot=slot, using=using)
            for record in self._make_records(sure, unsure) if self._make_records else ():
                record.save(using=using, force_insert=True)
        return [RecordResult(None, hit.refusal) for hit in judged]

    def _next_lock_wait(self) -> float:
        seconds = min(self._lock_wait_seconds, self._locks_until - time.monotonic())
        self._lock_wait_seconds *= 2
        return max(seconds, FIRST_LOCK_WAIT_SECONDS)
