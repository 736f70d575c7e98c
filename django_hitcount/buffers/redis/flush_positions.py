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
    answers = redis.send([("MGET", own.batch_id, own.sequence) for own in names]) if names else []
    left: dict[int, list[UnsettledHits]] = {partition: [] for partition in replies}
    for (partition, other), (batch_id, sequence) in zip(earlier, answers, strict=True):
        left[partition] += _find_left_over(partition, other, batch_id, sequence)
    return {
        partition: FlushPosition(
            partition,
            run_id,
            reply.epoch or b"0",
            [*_find_claimed(reply.batch_id, partition, run_id), *left[partition]],
        )
        for partition, reply in replies.items()
    }


def _find_claimed(batch_id: bytes | None, partition: int, run_id: str) -> list[UnsettledHits]:
    found = read_batch_id(batch_id, partition)
    return [UnsettledHits(found, run_id, is_claimed=True)] if found else []


def _find_left_over(
    partition: int, run_id: str, batch_id: bytes | None, sequence: bytes | None
) -> list[UnsettledHits]:
    """Find what an earlier run has left: its batch, and its pending hits with their next id."""
    found = _find_claimed(batch_id, partition, run_id)
    last = read_batch_id(sequence, partition)
    if last:
        pending = last._replace(number=last.number + 1)
        found.append(UnsettledHits(pending, run_id, is_claimed=False))
    return found


def find_held_hashes(position: FlushPosition) -> list[str]:
    """Return the hashes whose hits are not in the tables at ``position``, by counter."""
    found = [run_keys(position.partition, position.run_id).pending]
    for held in position.unsettled:
        names = run_keys(position.partition, held.run_id)
        found.append(names.batch if held.is_claimed else names.pending)
    return found
