"""
Sketches of visitors in Redis: read them, count them, and merge them with those of the table.

A sketch is a HyperLogLog: it estimates how many different visitors there were. A union is several
sketches counted together.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, PartitionKeys, RunKeys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import Command, ScriptCall
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, parse_visitors
from django_hitcount.counters.sketches import Sketch, SketchUnion

SKETCHES_AT_A_TIME = 100
"""Sketches that are sent or read in one round trip. Each has at most 12 KB."""


def read(
    redis: GuardedRedis, names: RunKeys, touched: Mapping[DailyVisitorsKey, int]
) -> dict[DailyVisitorsKey, Sketch]:
    """Read the changed sketches of a partition. ``touched`` has 1 for new ones, 0 for others."""
    found: dict[DailyVisitorsKey, Sketch] = {}
    keys = [*touched]
    for start in range(0, len(keys), SKETCHES_AT_A_TIME):
        chunk = keys[start : start + SKETCHES_AT_A_TIME]
        sketches = [names.sketch(key.text) for key in chunk]
        call = ScriptCall("read_sketches", [names.pending, *sketches], [key.field for key in chunk])
        (replies,) = redis.send([call])
        for key, reply in zip(chunk, replies, strict=True):
            if reply is not None:  # If it is None, the sketch expired before this flush.
                count, data, is_begun = reply
                found[key] = Sketch(count, data, is_new=bool(touched[key] or is_begun))
    return found


def merge(
    redis: GuardedRedis, names: PartitionKeys, known: Mapping[DailyVisitorsKey, bytes]
) -> dict[DailyVisitorsKey, Sketch]:
    """Merge sketches of the table into those of Redis, and return the results."""
    calls = [
        ScriptCall(
            "merge_sketches", [*names.scratch, names.sketch(key.text)], [VISITORS_SECONDS, sketch]
        )
        for key, sketch in known.items()
    ]
    replies = _run_merges(redis, calls)
    return {key: Sketch(*reply) for key, reply in zip(known, replies, strict=True)}


def count_unions(
    redis: GuardedRedis, names: Sequence[PartitionKeys], unions: Sequence[SketchUnion]
) -> list[int]:
    """Count the different visitors of each union. ``names`` has the keys of their partitions."""
    calls = [
        ScriptCall(
            "merge_sketches", [*own.scratch, *(own.sketch(key.text) for key in live)], [0, *known]
        )
        for own, (_, live, known) in zip(names, unions, strict=True)
    ]
    return [int(count) for count, _ in _run_merges(redis, calls)]


def _run_merges(redis: GuardedRedis, calls: Sequence[ScriptCall]) -> Iterator[Reply]:
    return run_in_chunks(redis, calls, [len(call.args) - 1 for call in calls])


def run_in_chunks(
    redis: GuardedRedis, calls: Iterable[ScriptCall], sketches: Iterable[int]
) -> Iterator[Reply]:
    """
    Yield the replies to calls. ``sketches`` has how many sketches each of them sends.

    A round trip sends a hundred sketches.
    """
    chunk: list[ScriptCall | Command] = []
    size = 0
    for call, number in zip(calls, sketches, strict=True):
        if chunk and size + number > SKETCHES_AT_A_TIME:
            yield from redis.send(chunk)
            chunk, size = [], 0
        chunk.append(call)
        size += number
    yield from redis.send(chunk)


def count(
    redis: GuardedRedis,
    keys_by_partition: Mapping[int, Sequence[CounterKey]],
    first_day: datetime.date,
    last_day: datetime.date,
) -> dict[DailyVisitorsKey, int]:
    """Count the visitors of counters that Redis knows, by day. Costs one round trip."""
    calls = []
    for partition, keys in keys_by_partition.items():
        names = PartitionKeys(partition)
        by_counter: dict[str, list[CounterKey]] = defaultdict(list)
        for key in keys:
            by_counter[key.counter].append(key)
        for counter, group in by_counter.items():
            args = [names.sketches, first_day.isoformat(), last_day.isoformat(), counter]
            calls.append(
                ScriptCall("count_visitors", [names.sketches_of(*key[:2]) for key in group], args)
            )
    found = {}
    for objects in redis.send(calls):
        for flat in objects:
            for field, count in zip(flat[::2], flat[1::2], strict=True):
                with suppress(ValueError):  # We did not write it.
                    found[parse_visitors(f"v:{field.decode()}")] = int(count)
    return found


def find_names(
    redis: GuardedRedis, keys_by_partition: Mapping[int, Collection[CounterKey]]
) -> dict[int, list[str | bytes]]:
    """Find the keys of objects' sketches, and of the sets with their names. One round trip."""
    names_by_partition = {
        partition: [PartitionKeys(partition).sketches_of(*key[:2]) for key in keys]
        for partition, keys in keys_by_partition.items()
    }
    replies = redis.send(
        [
            ScriptCall("find_sketches", names, [PartitionKeys(partition).sketches])
            for partition, names in names_by_partition.items()
        ]
    )
    return {
        partition: [*names, *found]
        for (partition, names), found in zip(names_by_partition.items(), replies, strict=True)
    }
