"""
Positions: where a partition of RedisBuffer is between claims and settles.

A run is the time of a Redis server from one start to the next. The hits of each run have their own
keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django_hitcount.buffers.redis.claiming import parse_runs, read_batch_id
from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.counters.batches import FlushPosition, UnsettledHits


class PositionReply(NamedTuple):
    """What Redis returns about a partition, besides totals."""

    epoch: bytes | None
    batch_id: bytes | None
    runs: bytes | None


def read_positions(
    redis: GuardedRedis, run_id: str, replies: Mapping[int, PositionReply]
) -> dict[int, FlushPosition]:
    """
    Return the positions of partitions, by partition.

    Costs nothing. While there are hits of earlier runs of Redis, costs one round trip.
    """
    earlier = [
        (partition, other)
        for partition, reply in replies.items()
        for other in parse_runs(reply.runs) - {run_id}
    ]
    names = [run_keys(*pair) for pair in earlier]
    found = redis.send([ScriptCall("batch_ids", [own.batch, own.pending]) for own in names])
    left: dict[int, list[UnsettledHits]] = {partition: [] for partition in replies}
    for (partition, other), (batch, pending) in zip(earlier, found, strict=True):
        left[partition] += _find(batch, partition, other, is_claimed=True)
        left[partition] += _find(pending, partition, other, is_claimed=False)
    return {
        partition: FlushPosition(
            partition,
            run_id,
            reply.epoch or b"0",
            [*_find(reply.batch_id, partition, run_id, is_claimed=True), *left[partition]],
        )
        for partition, reply in replies.items()
    }


def _find(
    name: bytes | None, partition: int, run_id: str, *, is_claimed: bool
) -> list[UnsettledHits]:
    found = read_batch_id(name, partition)
    return [UnsettledHits(found, run_id, is_claimed=is_claimed)] if found else []


def find_held_hashes(position: FlushPosition) -> list[str]:
    """Return the hashes whose hits are not in the tables at ``position``, by counter."""
    found = [run_keys(position.partition, position.run_id).pending]
    for held in position.unsettled:
        names = run_keys(position.partition, held.run_id)
        found.append(names.batch if held.is_claimed else names.pending)
    return found
