"""
The visitors of the last days in Redis, so that a page need not read the table.

Redis keeps what closed days add up to, and knows whether the sketches of open days lack visitors of
the table. Both are kept until midnight, for each run of Redis anew. ``lua/kept_visitors.lua``
describes the keys.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence

from django_hitcount import conf
from django_hitcount.buffers.grouping import group_items
from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.sketches import run_in_chunks
from django_hitcount.counters.batches import FlushPosition
from django_hitcount.counters.days import open_days, seconds_until_midnight
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey
from django_hitcount.counters.page_numbers import DayInTable, LastDays, SpanCount

Group = tuple[int, Sequence[ObjectKey], Sequence[LastDays]]
"""A partition, objects in it, and the ranges of all these objects, object by object."""


def group_ranges(ranges: Iterable[LastDays], partitions: int) -> list[Group]:
    """Group ranges into calls of read_visitors.lua: it counts the same days of all its objects."""
    by_object: dict[tuple[int, str, datetime.date], list[LastDays]] = {}
    for last_days in ranges:
        key = last_days.key
        by_object.setdefault((*key[:2], last_days.today), []).append(last_days)
    groups: dict[tuple[object, ...], list[list[LastDays]]] = {}
    for found in by_object.values():
        partition = found[0].key.partition(partitions)
        same = tuple((each.key.counter, *each[1:]) for each in found)
        groups.setdefault((partition, *same), []).append(found)
    return [
        (
            found[0][0].key.partition(partitions),
            [of_object[0].key[:2] for of_object in found],
            [each for of_object in found for each in of_object],
        )
        for found in groups.values()
    ]


def build_read(group: Group, run_id: str) -> ScriptCall:
    """Make the call that counts the visitors of a group."""
    partition, objects, ranges = group
    of_one = ranges[: len(ranges) // len(objects)]
    names = run_keys(partition, run_id)
    keys = [names.epoch]
    for object_key in objects:
        keys += names.sketches_of(*object_key), names.kept_visitors_of(*object_key)
    today = of_one[0].today
    args = [names.sketches, names.kept_visitors, names.merged_days, *_open_until(today)]
    for key, first_day, _ in of_one:
        args += key.counter, first_day.isoformat()
    return ScriptCall("read_visitors", keys, args)


def _open_until(today: datetime.date) -> tuple[str, str]:
    """Return the open days, as the scripts take them, seen from ``today``."""
    return (today - datetime.timedelta(days=1)).isoformat(), today.isoformat()


def add_reply(
    group: Group,
    reply: Reply,
    run_id: str,
    known: dict[LastDays, SpanCount],
    unkept: dict[LastDays, FlushPosition],
) -> None:
    """Add the ranges of a group to those that Redis knows, and to those that it does not know."""
    partition, _, ranges = group
    epoch, *counts = reply
    for last_days, visitors, spans in zip(ranges, counts[::2], counts[1::2], strict=True):
        if int(visitors) >= 0:
            known[last_days] = SpanCount(int(visitors), int(spans))
        else:
            unkept[last_days] = FlushPosition(partition, run_id, epoch)


def keep(
    redis: GuardedRedis,
    rows: Mapping[LastDays, Mapping[DailyVisitorsKey, DayInTable]],
    positions: Mapping[LastDays, FlushPosition],
) -> dict[LastDays, SpanCount]:
    """
    Keep ranges, and count their visitors. ``rows`` has what the table has of each range.

    Leaves out the ranges whose partition was claimed or settled since ``positions``.
    """
    calls = [_build_keep(last_days, rows[last_days], positions[last_days]) for last_days in rows]
    sizes = [sum(day.sketch is not None for day in days.values()) for days in rows.values()]
    replies = run_in_chunks(redis, calls, sizes)
    return {
        last_days: SpanCount(*map(int, reply))
        for last_days, reply in zip(rows, replies, strict=True)
        if reply
    }


def _build_keep(
    last_days: LastDays, rows: Mapping[DailyVisitorsKey, DayInTable], position: FlushPosition
) -> ScriptCall:
    key = last_days.key
    names = run_keys(position.partition, position.run_id)
    keys = [
        names.epoch,
        names.sketches_of(*key[:2]),
        names.kept_visitors_of(*key[:2]),
        names.scratch[1],
    ]
    args: list[str | int | bytes] = [
        position.epoch,
        seconds_until_midnight(),
        VISITORS_SECONDS,
        names.sketches,
        names.kept_visitors,
        names.merged_days,
        *_open_until(last_days.today),
        key.counter,
        last_days.first_day.isoformat(),
        int(conf.get_config().visitor_key_rotation != "day"),
    ]
    for visitors, (count, sketch) in rows.items():
        args += visitors.text, count, sketch or b""
    return ScriptCall("keep_visitors", keys, args)


def build_drops(keys: Iterable[CounterKey], partitions: int, run_id: str) -> list[ScriptCall]:
    """Make the calls that drop the kept numbers of the objects of ``keys``."""
    objects = {key[:2]: key for key in keys}
    groups = group_items([key.partition(partitions) for key in objects.values()], objects)
    return [_build_drop(partition, found, run_id) for partition, found in groups.items()]


def build_late_drops(partition: int, hits: Sequence[NewHits], run_id: str) -> list[ScriptCall]:
    """Make the call for hits of visitors on a closed day: the kept numbers lack these visitors."""
    first_open_day, _ = open_days()
    objects = dict.fromkeys(hit.key[:2] for hit in hits if hit.day < first_open_day)
    return [_build_drop(partition, objects, run_id)] if objects else []


def _build_drop(partition: int, objects: Iterable[ObjectKey], run_id: str) -> ScriptCall:
    names = run_keys(partition, run_id)
    kept = [names.kept_visitors_of(*key) for key in objects]
    return ScriptCall("drop_kept", kept, [names.kept_visitors, names.merged_days])
