"""
The running totals in Redis, so that a page need not add up slots.

To load a total is to read its sum from the tables, add what Redis holds, and store it in Redis.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from django_hitcount.buffers.grouping import group_by_partition, split
from django_hitcount.buffers.redis.flush_positions import (
    PositionReply,
    find_held_hashes,
    read_positions,
)
from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.kept_visitors import build_drops
from django_hitcount.buffers.redis.keys import database_prefix, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.counters.batches import BufferState, FlushPosition
from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import BufferUnavailable

KEYS_AT_A_TIME = 500
"""Totals that are dropped in one round trip."""

EPOCH_BITS = 48
"""Length of the number that an epoch begins with. Two are the same with a chance of 1 in 10^14."""

SCANNED_AT_A_TIME = 1000
"""Keys that Redis looks at in one round trip."""

VOIDABLE = re.compile(rb"{\d+}:[^:]*:(total|kept_visitors|merged_days):")
"""The names, after the prefix, of what is read from the tables again if it is dropped."""

TOTAL = re.compile(rb"-?\d{1,19}")

Groups = Mapping[int, Sequence[CounterKey]]
"""Counters by partition."""


class RunningTotals:
    """Reads running totals, and loads those that Redis does not have."""

    def __init__(self, redis: GuardedRedis, *, partitions: int, ttl_seconds: int) -> None:
        self._redis = redis
        self._partitions = partitions
        self._ttl_seconds = ttl_seconds

    def read_state(self, keys: Collection[CounterKey]) -> BufferState:
        groups = group_by_partition(keys, self._partitions)
        try:
            run_id, replies = self._redis.send_to_run(
                lambda run_id: number_epochs(build_state_reads(groups, run_id))
            )
        except BufferUnavailable:
            return BufferState()
        return self.read_state_replies(groups, run_id, replies)

    def read_state_replies(
        self, groups: Groups, run_id: str, replies: Sequence[Reply]
    ) -> BufferState:
        """Convert the replies to build_state_reads()."""
        totals: dict[CounterKey, int] = {}
        positions: dict[int, PositionReply] = {}
        for (partition, group), reply in zip(groups.items(), replies, strict=True):
            batch_id, epoch, runs, *found = reply
            positions[partition] = PositionReply(epoch, batch_id, runs)
            totals |= _known_totals(group, found)
        return BufferState(totals=totals, positions=self.read_positions(run_id, positions))

    def read_positions(
        self, run_id: str, replies: Mapping[int, PositionReply]
    ) -> Mapping[int, FlushPosition]:
        """Return the positions of partitions, or an empty dict if Redis does not answer."""
        try:
            return read_positions(self._redis, run_id, replies) if replies else {}
        except BufferUnavailable:
            return {}

    def complete(
        self, sums: Mapping[CounterKey, int], *, state: BufferState, keep: bool
    ) -> Mapping[CounterKey, int]:
        groups = group_by_partition(sums, self._partitions)
        asked = {p: group for p, group in groups.items() if p in state.positions}
        totals = {key: sums[key] for p, group in groups.items() if p not in asked for key in group}
        ttl_seconds = self._ttl_seconds if keep else 0
        calls = []
        for partition, group in asked.items():
            position = state.positions[partition]
            names = run_keys(partition, position.run_id)
            hashes = find_held_hashes(position)
            args: list[str | int | bytes] = [position.epoch, len(hashes), ttl_seconds]
            for key in group:
                args += f"{key.content_type_id}:{key.counter}", key.object_id, sums[key]
            keys = [names.epoch, *hashes, *(names.total(key.text) for key in group)]
            calls.append(ScriptCall("complete_totals", keys, args))
        runs = {position.run_id for position in state.positions.values()}
        try:
            # After a restart, Redis may be in an older state with the same epoch: read again.
            _, replies = self._redis.send_to_run(lambda run_id: calls if runs == {run_id} else [])
        except BufferUnavailable:
            return sums
        for group, completed in zip(asked.values(), replies, strict=False):
            if completed is not None:
                totals |= _known_totals(group, completed)
        return totals

    def discard(self, keys: Iterable[CounterKey]) -> None:
        for some in split([*keys], KEYS_AT_A_TIME):
            self._redis.send_to_run(partial(build_discard_calls, some, self._partitions))

    def discard_all(self) -> None:
        """
        Drop all totals and kept numbers of visitors. Costs a round trip per thousand keys in Redis.

        Totals that are read from the tables meanwhile are not kept, unless that began after this.
        """
        partitions = range(self._partitions)
        self._redis.send_to_run(
            lambda run_id: [ScriptCall("discard", [run_keys(p, run_id).epoch]) for p in partitions]
        )
        prefix = database_prefix()
        cursor: bytes | int = 0
        while cursor != b"0":
            command = ("SCAN", cursor, "MATCH", f"{prefix}{{*", "COUNT", SCANNED_AT_A_TIME)
            ((cursor, names),) = self._redis.send([command])
            found = [name for name in names if VOIDABLE.match(name, len(prefix))]
            if found:
                self._redis.send([("UNLINK", *found)])


def build_state_reads(groups: Groups, run_id: str) -> list[ScriptCall]:
    """
    Make the calls that read the totals of counters, and the positions of partitions.

    Pass them through number_epochs() each time that they are sent.
    """
    calls = []
    for partition, group in groups.items():
        names = run_keys(partition, run_id)
        totals = [names.total(key.text) for key in group]
        keys = [names.batch, names.epoch, names.runs, *totals]
        calls.append(ScriptCall("read_totals", keys))
    return calls


def number_epochs(calls: Iterable[ScriptCall]) -> list[ScriptCall]:
    """Give each call a random number, with which the epoch of its partition may begin."""
    return [call._replace(args=[random.getrandbits(EPOCH_BITS)]) for call in calls]


def build_discard_calls(
    keys: Iterable[CounterKey], partitions: int, run_id: str
) -> list[ScriptCall]:
    """
    Make the calls that drop the totals of ``keys``, so that they are loaded again.

    They also drop the kept numbers of visitors.
    """
    keys = [*keys]
    calls = build_drops(keys, partitions, run_id)
    for partition, group in group_by_partition(keys, partitions).items():
        names = run_keys(partition, run_id)
        totals = [names.total(key.text) for key in group]
        calls.append(ScriptCall("discard", [names.epoch, *totals]))
    return calls


def _known_totals(
    keys: Iterable[CounterKey], totals: Iterable[bytes | int | None]
) -> dict[CounterKey, int]:
    return {key: int(total) for key, total in zip(keys, totals, strict=True) if _is_total(total)}


def _is_total(reply: bytes | int | None) -> TypeGuard[bytes | int]:
    """Return whether ``reply`` is a total, and not a value that somebody else wrote."""
    return isinstance(reply, int) or (reply is not None and TOTAL.fullmatch(reply) is not None)
