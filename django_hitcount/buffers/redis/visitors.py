"""
The visitors of objects in Redis: read their sketches, count them, and merge those of the table.

A sketch is a HyperLogLog: it estimates how many different visitors there were. So that a page need
not read the table, Redis keeps what it must know about a range of days that ends today, until
midnight, for each run of Redis anew. ``lua/sketches.lua`` describes that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from django_hitcount import conf
from django_hitcount.buffers.grouping import group_items, split
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, PartitionKeys, RunKeys, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import Command, ScriptCall, number_epochs
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.counters.batches import FlushPosition
from django_hitcount.counters.days import seconds_until_midnight
from django_hitcount.counters.keys import CounterRange, DailyVisitorsKey, ObjectKey, parse_visitors
from django_hitcount.counters.numbers import UnkeptRange
from django_hitcount.counters.visitors import DayInTable, MergedDays, Sketch, Visitors

SKETCHES_AT_A_TIME = 100
"""Sketches that are sent or read in one round trip. Each has at most 12 KB."""

Groups = Mapping[int, Sequence[CounterRange]]
"""Ranges by partition."""

InTable = Mapping[DailyVisitorsKey, DayInTable]
"""What the table has of a range."""


def group_ranges(ranges: Iterable[CounterRange], partitions: int) -> Groups:
    """Return ranges by the partition of their object."""
    ranges = [*ranges]
    return group_items([of.key.partition(partitions) for of in ranges], ranges)


def build_reads(groups: Groups, run_id: str, *, may_be_kept: bool = True) -> list[ScriptCall]:
    """
    Make the calls that count the visitors of ranges. If they are not kept, they count each day.

    Pass them through number_epochs() each time that they are sent.
    """
    calls = []
    for partition, ranges in groups.items():
        names = run_keys(partition, run_id)
        keys, args = [names.epoch], list[str]()
        for of in ranges:
            keys += names.sketches_of(*of.key[:2]), names.kept_visitors_of(*of.key[:2])
            args += of.text, of.open_days.text if may_be_kept else ""
        calls.append(ScriptCall("read_visitors", keys, args))
    return calls


def read_replies(
    groups: Groups, run_id: str, replies: Iterable[Reply]
) -> tuple[dict[CounterRange, Visitors], dict[CounterRange, UnkeptRange]]:
    """Convert the replies to build_reads(). Returns the ranges that Redis knows, and the others."""
    known, unknown = {}, {}
    for (partition, ranges), (epoch, *found) in zip(groups.items(), replies, strict=True):
        for of, (is_known, *numbers) in zip(ranges, found, strict=True):
            if is_known:
                known[of] = Visitors(*numbers)
            else:
                position = FlushPosition(partition, run_id, epoch)
                unknown[of] = UnkeptRange(position, _read_days(numbers))
    return known, unknown


def _read_days(flat: Sequence[Reply]) -> dict[DailyVisitorsKey, int]:
    found = {}
    for field, count in zip(flat[::2], flat[1::2], strict=True):
        with suppress(ValueError):  # We did not write it.
            found[parse_visitors(f"v:{field.decode()}")] = int(count)
    return found


def count_days(redis: RedisServer, groups: Groups) -> dict[DailyVisitorsKey, int]:
    """Count the visitors that Redis has of each day of ranges. Costs one round trip."""
    if not groups:
        return {}
    run_id, replies = redis.send_to_run(
        lambda link: number_epochs(build_reads(groups, link.run_id, may_be_kept=False))
    )
    _, found = read_replies(groups, run_id, replies)
    return {day: count for of in found.values() for day, count in of.days.items()}


def can_keep(of: CounterRange) -> bool:
    """Return whether Redis can keep a range: no two of its closed days have visitors in common."""
    return of == of.open_days or conf.get_config().visitor_key_rotation == "day"


def keep(
    redis: RedisServer,
    rows: Mapping[CounterRange, InTable],
    unkept: Mapping[CounterRange, UnkeptRange],
) -> dict[CounterRange, Visitors]:
    """Keep ranges, and count their visitors. See Buffer.keep_visitors()."""
    built = {of: _build_keep(of, rows[of], unkept[of]) for of in rows}
    calls = {of: call for of, call in built.items() if call}
    sizes = [len(call.keys) - 4 for call in calls.values()]  # Four are no sketches.
    replies = _run_in_chunks(redis, calls.values(), sizes)
    return {
        of: Visitors(*reply[1:])
        for of, reply in zip(calls, replies, strict=True)
        if reply is not None and reply[0]
    }


def _build_keep(of: CounterRange, in_table: InTable, known: UnkeptRange) -> ScriptCall | None:
    """
    Make the call that keeps a range.

    None if it cannot be kept: its closed days may have visitors in common, or the table has
    visitors of open days whom the next flush delivers.
    """
    (partition, run_id, epoch), in_redis = known
    names = run_keys(partition, run_id)
    open_days, visitors, spans = of.open_days, 0, 0
    sketches: dict[str, bytes] = {}
    for day in {*in_table, *in_redis}:
        row = in_table.get(day, DayInTable())
        is_open = day.day >= open_days.first_day
        if row.others if is_open else f"-{day.day}-" not in day.key_id:
            return None
        if is_open:
            sketches[names.sketch(day.text)] = row.sketch or b""
        else:
            visitors += max(in_redis.get(day, 0), row.visitors)
            spans += 1
    of_object = names.sketches_of(*of.key[:2]), names.kept_visitors_of(*of.key[:2])
    keys = [names.epoch, *of_object, names.scratch[1], *sketches]
    args: list[str | int | bytes] = [epoch, seconds_until_midnight(), VISITORS_SECONDS]
    args += of.text, open_days.text, f"{visitors} {spans}", *sketches.values()
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
