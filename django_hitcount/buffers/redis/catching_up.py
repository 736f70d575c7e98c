"""Deliver to Redis what it missed while it was away."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Collection, Sequence
from typing import Any

from django.db import connections

from django_hitcount.buffers.grouping import group_items
from django_hitcount.buffers.redis.kept_visitors import build_drops
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.record_call import build_record_call, build_record_calls
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.totals import build_discard_calls
from django_hitcount.buffers.redis.transport import RedisTransport, raise_failures
from django_hitcount.counters.days import open_days
from django_hitcount.counters.hits import NewHits
from django_hitcount.db import seen_visitors
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.outages import missed_records
from django_hitcount.outages.command_ids import CommandId
from django_hitcount.outages.missed_records import MissedHits

VISITORS_AT_A_TIME = 200
"""Visitors delivered in one round trip."""

logger = logging.getLogger("django_hitcount")


class CatchUp:
    """Delivers missed records, and visitors who are only in the tables."""

    def __init__(self, transport: RedisTransport, *, partitions: int, threshold: int) -> None:
        self._transport = transport
        self._partitions = partitions
        self._threshold = threshold
        self._is_due = False

    def deliver_if_back(self, is_back: bool) -> None:
        """
        If Redis is back, deliver the oldest missed records, before it returns wrong totals.

        A page waits for this. So the next flush delivers all other records.
        """
        self._is_due = self._is_due or is_back
        if not self._is_due or not connections[hits_alias()].get_autocommit():
            return  # Within a view's transaction, the rows would stay locked until its COMMIT.
        self._is_due = False
        try:
            self._deliver(missed_records.read_oldest())
        except DATABASE_ERRORS as exc:
            logger.warning("Hits that Redis missed cannot be delivered now: %s", exc)

    def deliver_all(self) -> int:
        """Deliver everything. Return how many records and visitors there were."""
        count = 0
        while missed := missed_records.read_oldest():
            self._deliver(missed)
            count += len(missed)
        return count + self._deliver_visitors()

    def _deliver(self, missed: Sequence[MissedHits]) -> None:
        flushed = self._find_flushed(missed)
        raise_failures(
            self._transport.send(lambda run_id: self._build_calls(missed, flushed, run_id)).replies
        )
        missed_records.drop(missed)

    def _find_flushed(self, missed: Sequence[MissedHits]) -> set[int]:
        """
        Return the ids of records in doubt whose hits may be in the tables already.

        They are if Redis ran the command, and a flush then moved its hits.
        """
        return {
            record.id
            for record in missed
            if record.command_id
            for partition in self._by_partition(record.hits)
            if missed_records.was_flushed_since(record, partition)
        }

    def _build_calls(
        self, missed: Sequence[MissedHits], flushed: Collection[int], run_id: str
    ) -> list[ScriptCall]:
        """
        Return the commands in doubt, to send them again, and calls that discard wrong totals.

        These totals do not include the hits that were written into the slots. The kept numbers of
        visitors do not include those who came meanwhile.
        """
        keys = {hit.key for record in missed for hit in record.hits}
        calls = build_drops(keys, self._partitions, run_id)
        stale = set()
        for record in missed:
            if not record.command_id:
                stale |= {hit.key for hit in record.hits}
            elif record.run_id != run_id and record.id in flushed:
                logger.error(
                    "Redis was restarted. %d hits in doubt are dropped: they may be in the tables.",
                    len(record.hits),
                )
            else:
                groups = self._by_partition(record.hits)
                calls += build_record_calls(groups, record.command_id, self._threshold, run_id)
        return [*calls, *build_discard_calls(stale, self._partitions, run_id)]

    def _deliver_visitors(self) -> int:
        """
        Deliver the visitors of open days who are only in the tables.

        They came while Redis was away, or before it was set up.
        """
        using, recorder, numbers = hits_alias(), uuid.uuid4(), itertools.count(1)
        count = 0
        while rows := seen_visitors.read_oldest(open_days(), VISITORS_AT_A_TIME, using=using):
            ids = {pk: CommandId(recorder, next(numbers)) for pk in rows}

            def build(run_id: str, rows: Any = rows, ids: Any = ids) -> list[ScriptCall]:
                # All visitors of a call must have one counter and day. A call each is simplest.
                return [
                    build_record_call(
                        run_keys(hit.key.partition(self._partitions), run_id),
                        [hit],
                        ids[pk],
                        self._threshold,
                    )
                    for pk, hit in rows.items()
                ]

            raise_failures(self._transport.send(build).replies)
            seen_visitors.drop_rows(rows, using=using)
            count += len(rows)
        return count

    def _by_partition(self, hits: Sequence[NewHits]) -> dict[int, list[NewHits]]:
        return group_items([hit.key.partition(self._partitions) for hit in hits], hits)
