"""
The visitors of objects in Redis: read their sketches, count them, and merge those of the table.

A sketch is a HyperLogLog: it estimates how many different visitors there were. So that a page need
not read the table, Redis keeps what it must know about a range of days that ends today, until
midnight, for each run of Redis anew. ``lua/sketches.lua`` describes that.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from django_hitcount import conf
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, PartitionKeys, RunKeys, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import GAP, Command, ScriptCall
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.counters import split
from django_hitcount.counters.batches import Known, Position
from django_hitcount.counters.days import day_of, seconds_until_midnight
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey, parse_visitors
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.visitors import (
    DayInTable,
    MergedDays,
    Sketch,
    Visitors,
    VisitorsOfDays,
)

SKETCHES_AT_A_TIME = 100
"""Sketches that are sent or read in one round trip. Each has at most 12 KB."""

Groups = Mapping[int, Sequence[Number]]
"""Numbers of visitors by partition."""


def open_days_of(number: Number) -> Number:
    """Return what names the visitors of the open days, if the last day is today."""
    first_day, last_day = number.days
    yesterday = last_day - datetime.timedelta(days=1)
    return number._replace(first_day=max(first_day, yesterday))


def can_keep(number: Number) -> bool:
    """
    Return whether Redis can keep a number of visitors: its days end today, and no two of the closed
    ones have visitors in common.
    """
    if number.last_day != day_of():
        return False
    return conf.get_config().visitor_key_rotation == "day" or open_days_of(number) == number


def build_reads(groups: Groups, run_id: str, kept: Collection[Number]) -> list[ScriptCall]:
    """
    Make the calls that count visitors. Of numbers that are not ``kept``, they count each day.

    A gap in each is for the number of an epoch.
    """
    calls = []
    for partition, numbers in groups.items():
        names = run_keys(partition, run_id)
        keys, args = [names.epoch], [GAP]
        for number in numbers:
            of_object = number.key[:2]
            keys += names.sketches_of(*of_object), names.kept_visitors_of(*of_object)
            args += number.text, open_days_of(number).text if number in kept else ""
        calls.append(ScriptCall("read_visitors", keys, args))
    return calls


def add_replies(
    known: Known, groups: Groups, run_id: str, replies: Iterable[Reply], kept: Collection[Number]
) -> None:
    """Add the replies to build_reads() to what is known."""
    for (partition, numbers), (epoch, *found) in zip(groups.items(), replies, strict=True):
        position = Position(partition, run_id, epoch)
        for number, (is_known, *counts) in zip(numbers, found, strict=True):
            if is_known:
                known.values[number] = Visitors(*counts)
                continue
            if number in kept:
                known.keepable[number] = position
            for field, count in zip(counts[::2], counts[1::2], strict=True):
                with suppress(ValueError):  # We did not write it.
                    known.visitors[parse_visitors(f"v:{field.decode()}")] = int(count)


def keep(
    redis: RedisServer, numbers: Iterable[Number], days: VisitorsOfDays, known: Known
) -> dict[Number, Visitors]:
    """Keep numbers of visitors, and count these. See Buffer.keep_visitors()."""
    calls = {}
    for number in numbers:
        position = known.keepable.get(number)
        if position and (call := _build_keep(number, days, position)):
            calls[number] = call
    sizes = [len(call.keys) - 4 for call in calls.values()]  # Four are no sketches.
    replies = _run_in_chunks(redis, calls.values(), sizes)
    return {
        number: Visitors(*reply[1:])
        for number, reply in zip(calls, replies, strict=True)
        if reply is not None and reply[0]
    }


def _build_keep(number: Number, days: VisitorsOfDays, position: Position) -> ScriptCall | None:
    """
    Make the call that keeps a number.

    None if it cannot be kept: its closed days may have visitors in common, or the table has
    visitors of open days whom the next flush delivers.
    """
    names = run_keys(position.partition, position.run_id)
    open_days, visitors, spans = open_days_of(number), 0, 0
    sketches: dict[str, bytes] = {}
    for day in days.of(number):
        row = days.in_tables.get(day, DayInTable())
        is_open = open_days.has(day.day)
        if row.others if is_open else f"-{day.day}-" not in day.key_id:
            return None
        if is_open:
            sketches[names.sketch(day.text)] = row.sketch or b""
        else:
            visitors += days.on(day)
            spans += 1
    of_object = number.key[:2]
    keys = [names.epoch, names.sketches_of(*of_object), names.kept_visitors_of(*of_object)]
    keys += names.scratch[1], *sketches
    args: list[str | int | bytes] = [position.epoch, seconds_until_midnight(), VISITORS_SECONDS]
    args += number.text, open_days.text, f"{visitors} {spans}", *sketches.values()
    return ScriptCall("keep_visitors", keys, args)


def discard_kept(partition: int, objects: Iterable[ObjectKey], run_id: str) -> ScriptCall:
    """Make the call that drops what is kept of objects, so that the table is read again."""
    names = run_keys(partition, run_id)
    return ScriptCall("discard", [names.epoch, *(names.kept_visitors_of(*of) for of in objects)])


def read_sketches(
    redis: RedisServer, names: RunKeys, touched: Mapping[DailyVisitorsKey, int]
) -> dict[DailyVisitorsKey, Sketch]:
    """Read the changed sketches of a partition. ``touched`` has 1 for new ones, 0 for others."""
    found: dict[DailyVisitorsKey, Sketch] = {}
    for chunk in split([*touched], SKETCHES_AT_A_TIME):
        sketches = [names.sketch(key.text) for key in chunk]
        call = ScriptCall("read_sketches", [names.pending, *sketches], [key.field for key in chunk])
        (replies,) = redis.send([call])
        for key, reply in zip(chunk, replies, strict=True):
            if reply is not None:  # If it is None, the sketch expired before this flush.
                count, data, is_begun = reply
                found[key] = Sketch(count, data, is_new=bool(touched[key] or is_begun))
    return found


def merge_sketches(
    redis: RedisServer, known: Mapping[DailyVisitorsKey, bytes], partitions: int
) -> dict[DailyVisitorsKey, Sketch]:
    """Merge sketches of the table into those of Redis, and return the results."""
    merges = [{key: sketch} for key, sketch in known.items()]
    replies = _merge(redis, merges, partitions, seconds=VISITORS_SECONDS)
    return {key: Sketch(*reply) for key, reply in zip(known, replies, strict=True)}


def drop_sketches(
    redis: RedisServer, objects: Collection[ObjectKey], partitions: int, *, only_flushed: bool
) -> None:
    """Drop the sketches of objects. See Buffer.discard_objects(). Costs a round trip per 500."""

    def build(some: Sequence[ObjectKey], run_id: str) -> list[ScriptCall]:
        calls = []
        for of in some:
            names = run_keys(CounterKey(*of, "").partition(partitions), run_id)
            keys = [names.sketches_of(*of), names.runs, names.epoch, names.pending, names.batch]
            calls.append(ScriptCall("drop_sketches", keys, ["1" if only_flushed else ""]))
        return calls

    redis.send_in_pieces(objects, build)


def count_merged(redis: RedisServer, merges: Iterable[MergedDays], partitions: int) -> list[int]:
    """Count the different visitors of days that are counted together."""
    return [count for count, _ in _merge(redis, merges, partitions, seconds=0)]


def _merge(
    redis: RedisServer, merges: Iterable[MergedDays], partitions: int, *, seconds: int
) -> Iterator[Reply]:
    """Merge sketches of the table and of Redis. Keeps the results for some seconds, or not (0)."""
    calls, sizes = [], []
    for days in merges:
        names = PartitionKeys(next(iter(days)).key.partition(partitions))
        given = [sketch for sketch in days.values() if sketch]
        keys = [*names.scratch, *(names.sketch(day.text) for day in days)]
        calls.append(ScriptCall("merge_sketches", keys, [seconds, *given]))
        sizes.append(len(given))
    return _run_in_chunks(redis, calls, sizes)


def _run_in_chunks(
    redis: RedisServer, calls: Iterable[ScriptCall], sketches: Iterable[int]
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
