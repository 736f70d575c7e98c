"""
The running totals in Redis, so that a page need not add up slots.

If Redis does not know a total, it returns the hits that it holds, with the ids of their batches.
The caller adds those to the sum from the tables that are not in it, and Redis keeps the total.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from django_hitcount.buffers.grouping import group_by_partition, split
from django_hitcount.buffers.redis.claiming import parse_runs, read_held_id
from django_hitcount.buffers.redis.keys import database_prefix, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.counters.batches import BufferState, FlushPosition, HeldHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import BufferUnavailable

KEYS_AT_A_TIME = 500
"""Totals that are dropped in one round trip."""

SCANNED_AT_A_TIME = 1000
"""Keys that Redis looks at in one round trip."""

VOIDABLE = re.compile(rb"{(\d+)}:[^:]*:(?:total|kept_visitors):")
"""The names, after the prefix, of what is read from the tables again if it is dropped."""

Groups = Mapping[int, Sequence[CounterKey]]
"""Counters by partition."""


class Unknown(NamedTuple):
    """What Redis returns about the counters of a partition whose totals it does not know."""

    keys: Sequence[CounterKey]
    epoch: bytes
    runs: bytes | None
    batch: Sequence[bytes | None]
    """The name of the batch that is set aside, and its hits of the counters."""

    pending: Sequence[bytes | None]
    """The same of the pending hits."""


class RunningTotals:
    """Reads running totals, and keeps those that Redis does not have."""

    def __init__(self, redis: RedisServer, *, partitions: int, ttl_seconds: int) -> None:
        self._redis = redis
        self._partitions = partitions
        self._ttl_seconds = ttl_seconds

    def read_state_replies(
        self, groups: Groups, run_id: str, replies: Sequence[Reply]
    ) -> BufferState:
        """Convert the replies to build_state_reads(). Costs what find_held() costs."""
        known: dict[CounterKey, int] = {}
        unknown: dict[int, Unknown] = {}
        for (partition, keys), (epoch, runs, totals, *held) in zip(
            groups.items(), replies, strict=True
        ):
            found = dict(zip(keys, totals, strict=True))
            known |= {key: int(total) for key, total in found.items() if total is not None}
            missing = [key for key, total in found.items() if total is None]
            if missing:
                unknown[partition] = Unknown(missing, epoch, runs, *held)
        return self.find_held(run_id, unknown, known)

    def find_held(
        self,
        run_id: str,
        unknown: Mapping[int, Unknown],
        known: Mapping[CounterKey, int] | None = None,
    ) -> BufferState:
        """
        Return a state with the hits that Redis holds of counters, by partition.

        Costs nothing. While there are hits of earlier runs of Redis, costs one round trip. If Redis
        does not answer, they are left out, and no total is kept that lacks them.
        """
        held, pending = [], {}
        for partition, found in unknown.items():
            held.append(_parse_held(partition, found.keys, found.batch))
            may_grow = _parse_held(partition, found.keys, found.pending)
            held.append(may_grow)
            pending[FlushPosition(partition, run_id, found.epoch)] = may_grow
        earlier = [
            (partition, other)
            for partition, found in unknown.items()
            for other in parse_runs(found.runs) - {run_id}
        ]
        with suppress(BufferUnavailable):
            calls = [_build_held_read(*place, unknown[place[0]].keys) for place in earlier]
            for (partition, _), reply in zip(earlier, self._redis.send(calls), strict=True):
                keys = unknown[partition].keys
                held += [_parse_held(partition, keys, found) for found in reply]
            return BufferState(totals=known or {}, held=held, pending=pending)
        return BufferState(totals=known or {}, held=held)

    def keep(self, totals: Mapping[CounterKey, int], *, state: BufferState) -> None:
        if not state.pending:
            return
        calls = []
        for position, pending in state.pending.items():
            names = run_keys(position.partition, position.run_id)
            args: list[str | int | bytes] = [position.epoch, self._ttl_seconds]
            keys = [names.epoch, names.pending]
            for key, hits in pending.hits.items():
                if key in totals:
                    keys.append(names.total(key.text))
                    args += _describe(key)
                    args.append(totals[key] - hits)
            calls.append(ScriptCall("keep_totals", keys, args))
        runs = {position.run_id for position in state.pending}
        with suppress(BufferUnavailable):
            # After a restart, Redis may be in an older state with the same epoch.
            self._redis.send_to_run(lambda link: calls if runs == {link.run_id} else [])

    def discard(self, keys: Iterable[CounterKey], *, with_sketches: bool = False) -> None:
        for some in split([*keys], KEYS_AT_A_TIME):
            self._discard_some(some, with_sketches)

    def _discard_some(self, keys: Collection[CounterKey], with_sketches: bool) -> None:
        of = keys, self._partitions
        self._redis.send_to_run(
            lambda link: build_discard_calls(*of, link.run_id, with_sketches=with_sketches)
        )

    def discard_all(self, partitions: Collection[int] | None = None) -> None:
        """
        Drop all totals and kept numbers of visitors, or those of some partitions.

        Totals that are read from the tables meanwhile are not kept, unless that began after this.
        Costs a round trip per thousand keys in Redis.
        """
        wanted = range(self._partitions) if partitions is None else partitions
        self._redis.send_to_run(
            lambda link: [ScriptCall("discard", [run_keys(p, link.run_id).epoch]) for p in wanted]
        )
        prefix = database_prefix()
        cursor: bytes | int = 0
        while cursor != b"0":
            command = ("SCAN", cursor, "MATCH", f"{prefix}{{*", "COUNT", SCANNED_AT_A_TIME)
            ((cursor, names),) = self._redis.send([command])
            found = [(name, VOIDABLE.match(name, len(prefix))) for name in names]
            gone = [
                name
                for name, match in found
                if match and (partitions is None or int(match[1]) in partitions)
            ]
            if gone:
                self._redis.send([("UNLINK", *gone)])


def build_state_reads(groups: Groups, run_id: str) -> list[ScriptCall]:
    """
    Make the calls that read the totals of counters, and the hits of those that have none.

    Pass them through number_epochs() each time that they are sent.
    """
    calls = []
    for partition, group in groups.items():
        names = run_keys(partition, run_id)
        totals = [names.total(key.text) for key in group]
        keys = [names.batch, names.pending, names.epoch, names.runs, *totals]
        args = [part for key in group for part in _describe(key)]
        calls.append(ScriptCall("read_totals", keys, args))
    return calls


def build_discard_calls(
    keys: Iterable[CounterKey], partitions: int, run_id: str, *, with_sketches: bool = False
) -> list[ScriptCall]:
    """
    Make the calls that drop the totals of ``keys``, so that they are loaded again.

    They also drop the kept numbers of visitors, and the sketches if the objects were deleted.
    """
    calls = []
    for partition, group in group_by_partition(keys, partitions).items():
        names = run_keys(partition, run_id)
        objects = dict.fromkeys(key[:2] for key in group)
        gone = [names.total(key.text) for key in group]
        gone += [names.kept_visitors_of(*of) for of in objects]
        args = []
        if with_sketches:
            gone += [names.sketches_of(*of) for of in objects]
            args.append(names.sketches)
        calls.append(ScriptCall("discard", [names.epoch, *gone], args))
    return calls


def _build_held_read(partition: int, run_id: str, keys: Iterable[CounterKey]) -> ScriptCall:
    names = run_keys(partition, run_id)
    args = [part for key in keys for part in _describe(key)]
    return ScriptCall("held_totals", [names.batch, names.pending], args)


def _describe(key: CounterKey) -> tuple[str, str]:
    """Return a counter as the scripts take it."""
    return f"{key.content_type_id}:{key.counter}", key.object_id


def _parse_held(
    partition: int, keys: Iterable[CounterKey], found: Sequence[bytes | None]
) -> HeldHits[CounterKey]:
    name, *hits = found
    batch_id = read_held_id(name, partition)
    return HeldHits(batch_id, {key: int(n or 0) for key, n in zip(keys, hits, strict=True)})
