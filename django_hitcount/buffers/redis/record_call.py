"""
The call of ``lua/record.lua``, and the meaning of its reply.

The script reads the keys and the arguments in order. If you change the order, change it in both.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from django_hitcount import conf
from django_hitcount.buffers.redis.bloom import Geometry
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, RunKeys, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.totals import Unknown
from django_hitcount.buffers.redis.visitors import discard_kept
from django_hitcount.conf import CounterOptions
from django_hitcount.counters import jitter
from django_hitcount.counters.batches import RecordResult
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.outcomes import ADDRESS_LIMIT, REPEAT
from django_hitcount.outages.missed_records import CommandId

ADDRESS_BYTES = 8
"""How many bytes of an address hash name the address in Redis. They follow the first byte, which
selects one of 256 Redis hashes: PartitionKeys.addresses(). Among a million addresses, two have the
same bytes with a chance of 1 in 10^10."""

HITS_AT_A_TIME = 500
"""Hits that are sent in one round trip. They take Redis about 10 ms."""

REMEMBERED_COUNTERS = 4096
"""Counters whose fields a process caches, in about 3 MB."""

VERDICTS = (None, REPEAT, ADDRESS_LIMIT)
"""The refusal of a hit, by the number that the script returns for it."""

Argument = str | int | bytes


class CounterFields(NamedTuple):
    """Fields and key that are sent with each hit on one counter on one day."""

    field: str
    total: str
    of_model: str


class SketchFields(NamedTuple):
    """Field and keys that are also sent if the visitor is counted."""

    field: str
    keys: tuple[str, ...]


class VisitorRule(NamedTuple):
    """The arguments that are the same for all hits of visitors on one counter on one day."""

    args: tuple[Argument, ...]
    repeat_milliseconds: int
    sketch_milliseconds: int
    address_milliseconds: int
    is_daily: bool


class RecordReply(NamedTuple):
    """The reply of the script."""

    results: list[RecordResult]
    is_full: bool
    """Whether this call brought the number of pending counters over FLUSH_THRESHOLD."""

    unknown: Unknown | None
    """What Redis holds of counters whose totals it does not know; None if it knows all."""


def build_record_calls(
    groups: Mapping[int, Sequence[NewHits]], command_id: CommandId, threshold: int
) -> list[ScriptCall]:
    """
    Make the calls of one command: each records the hits of a partition.

    Calls follow that drop the kept numbers of visitors, if a day of these visitors is over.
    """
    run_id = command_id.run_id
    calls = [
        build_record_call(run_keys(partition, run_id), hits, command_id, threshold)
        for partition, hits in groups.items()
    ]
    for partition, hits in groups.items():
        if hits[0].visitor and hits[0].day != day_of():
            calls.append(discard_kept(partition, [hit.key[:2] for hit in hits], run_id))
    return calls


def build_record_call(
    names: RunKeys,
    hits: Sequence[NewHits],
    command_id: CommandId,
    threshold: int,
    *,
    expected: str = "",
) -> ScriptCall:
    """
    Make the call that records hits of one partition.

    Either all hits have a visitor, or none. If they have, all are of one counter and day. If the
    command is sent again, ``expected`` is what Redis is expected to know, see find_commands.lua.
    """
    keys = [*names.for_record]
    recorder, number, _ = command_id
    args: list[Argument] = [recorder, number, expected, threshold, len(hits)]
    first = hits[0]
    if first.visitor:
        _add_hits_of_visitors(keys, args, names, hits)
    elif len(hits) == 1 and not expected and not first.refusal and first.amount > 0:
        field, total, of_model = _counter_fields(names, first.key, first.day)
        keys.append(total)
        args += "common", field, first.amount, "", of_model
    else:
        args.append("")
        for hit in hits:
            _add_hit(keys, args, names, hit)
    return ScriptCall("record", keys, args)


def read_reply(reply: Reply, hits: Sequence[NewHits]) -> RecordReply:
    """Convert the reply to the call that recorded ``hits``."""
    if isinstance(reply, int):
        return RecordReply([RecordResult(reply, None)], False, None)
    is_full, totals, refusals, held = reply
    results = [
        RecordResult(None if total is None else int(total), hit.refusal or VERDICTS[refusal])
        for hit, total, refusal in zip(hits, totals, refusals, strict=True)
    ]
    missing = [hit.key for hit, result in zip(hits, results, strict=True) if result.total is None]
    return RecordReply(results, bool(is_full), Unknown(missing, *held) if held else None)


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _counter_fields(names: RunKeys, key: CounterKey, day: datetime.date) -> CounterFields:
    return CounterFields(key.on(day), names.total(key.text), key.model_on(day))


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _sketch_fields(names: RunKeys, visitors: DailyVisitorsKey) -> SketchFields:
    of_object = names.sketches_of(visitors.key.content_type_id, visitors.key.object_id)
    return SketchFields(visitors.text, (names.sketch(visitors.text), of_object))


def _add_hit(keys: list[str], args: list[Argument], names: RunKeys, hit: NewHits) -> None:
    field, total, _ = _counter_fields(names, hit.key, hit.day)
    refused = RefusedKey(hit.day, hit.key.counter, hit.refusal).field if hit.refusal else ""
    keys.append(total)
    args += field, hit.amount, refused


def _add_hits_of_visitors(
    keys: list[str], args: list[Argument], names: RunKeys, hits: Sequence[NewHits]
) -> None:
    """Add hits, and what the script needs to find repeats, limit addresses and count visitors."""
    config, first = conf.get_config(), hits[0]
    of_first: VisitorHashes = first.visitor  # type: ignore[assignment]
    rule = _visitor_rule(
        config.options_of(first.key.counter),
        of_first.of_day is not None,
        of_first.address is not None,
        config.repeat_error_rate,
        first.key.counter,
        first.day,
        len(of_first.recent),
    )
    rule_args, repeat_milliseconds, sketch_milliseconds, address_milliseconds, is_daily = rule
    args += rule_args
    if is_daily:
        keys.append(names.seen(first.day, of_first.key_id))
    if sketch_milliseconds:
        keys.append(names.merged_sketches(first.day))
    for hit in hits:
        visitor: VisitorHashes = hit.visitor  # type: ignore[assignment]
        _add_hit(keys, args, names, hit)
        args.append(visitor.of_day or b"")
        if repeat_milliseconds:
            keys += [names.repeat(hashed) for hashed in visitor.recent]
            args.append(jitter.lengthen(repeat_milliseconds))
        if sketch_milliseconds:
            visitors = _sketch_fields(names, DailyVisitorsKey(hit.key, hit.day, visitor.key_id))
            keys += visitors.keys
            args += visitors.field, jitter.lengthen(sketch_milliseconds)
        if address_milliseconds and visitor.address:
            interval, hashed = visitor.address
            keys.append(names.addresses(interval.name, hashed[0]))
            args += hashed[1 : 1 + ADDRESS_BYTES], jitter.lengthen(address_milliseconds)


@lru_cache(maxsize=64)
def _visitor_rule(
    options: CounterOptions,
    is_identified: bool,
    is_limited: bool,
    error_rate: float,
    counter: str,
    day: datetime.date,
    recent: int,
) -> VisitorRule:
    """Make the rule for visitors, who may be identified or not, and have a limit or not."""
    is_daily = is_identified and options.repeat == "daily"
    is_counted = is_identified and options.visitors
    seconds = options.repeat if isinstance(options.repeat, int) else 0
    limit = (is_limited and options.per_address) or 0
    args = (
        ("seconds" if seconds else options.repeat) if is_identified else "always",
        recent if seconds else 0,
        int(is_counted),
        RefusedKey(day, counter, REPEAT).field,
        Geometry(rate=error_rate).for_script if is_daily else "",
        VISITORS_SECONDS,
        limit,
        RefusedKey(day, counter, ADDRESS_LIMIT).field if limit else "",
    )
    return VisitorRule(
        args,
        seconds * 1000 if recent else 0,
        VISITORS_SECONDS * 1000 if is_counted else 0,
        (seconds or VISITORS_SECONDS) * 1000 if limit else 0,
        is_daily,
    )
