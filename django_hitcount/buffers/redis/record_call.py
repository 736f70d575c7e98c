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
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, RunKeys, database_prefix, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.scripts import (
    PackedCall,
    ScriptCall,
    pack_word,
)
from django_hitcount.buffers.redis.totals import Unknown
from django_hitcount.buffers.redis.visitors import discard_kept
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters import jitter
from django_hitcount.counters.batches import RecordResult
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import ADDRESS_LIMIT, REPEAT, NewHits
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
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

LATER = "\0"
"""In place of the recorder and the number of a command: no other word contains it."""

Argument = str | int | bytes


class CounterPlan(NamedTuple):
    """What is sent with each hit on one counter on one day."""

    total: str
    """The key of the running total."""

    field: str


class VisitorPlan(NamedTuple):
    """What is also sent with each hit of a visitor on one counter on one day."""

    rule_args: tuple[Argument, ...]
    """Those that all hits of a call share."""

    rule_keys: tuple[str, ...]
    sketch_keys: tuple[str, ...]
    sketch_field: str
    repeat_milliseconds: int
    """0 if the rule does not apply, as the other times."""

    sketch_milliseconds: int
    address_milliseconds: int


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


def pack_plain_hit(
    hit: NewHits, command_id: CommandId, partitions: int, threshold: int
) -> PackedCall:
    """
    Make the call for one hit without a visitor, which may be a common one: see record.lua.

    If it is in doubt, build_record_call() makes the call that is sent again.
    """
    recorder, number, run_id = command_id
    start, after_number = _pack_counter(
        database_prefix(), run_id, hit.key, hit.day, hit.amount, partitions, threshold
    )
    digits = b"%d" % number
    return PackedCall(
        "record",
        b"%b$32\r\n%b\r\n$%d\r\n%b\r\n%b"
        % (start, recorder.encode(), len(digits), digits, after_number),
    )


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _pack_counter(
    prefix: str,
    run_id: str,
    key: CounterKey,
    day: datetime.date,
    amount: int,
    partitions: int,
    threshold: int,
) -> tuple[bytes, bytes]:
    """
    Return what comes before the recorder and the number of a command, and what comes after.

    ``prefix`` is the beginning of all keys: it only tells apart what is cached.
    """
    names = run_keys(key.partition(partitions), run_id)
    total, field = _plan_counter(names, key, day)
    keys = [*names.for_record, total]
    args: list[Argument] = [LATER, LATER, "", threshold, 1, "common", field, amount, ""]
    args.append(key.model_on(day))
    before, _, after = ScriptCall("record", keys, args).pack(run_id).partition(2 * pack_word(LATER))
    return before, after


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _plan_counter(names: RunKeys, key: CounterKey, day: datetime.date) -> CounterPlan:
    return CounterPlan(names.total(key.text), key.on(day))


def _add_hit(keys: list[str], args: list[Argument], names: RunKeys, hit: NewHits) -> None:
    total, field = _plan_counter(names, hit.key, hit.day)
    refused = RefusedKey(hit.day, hit.key.counter, hit.refusal).field if hit.refusal else ""
    keys.append(total)
    args += field, hit.amount, refused


def _add_hits_of_visitors(
    keys: list[str], args: list[Argument], names: RunKeys, hits: Sequence[NewHits]
) -> None:
    """Add hits, and what the script needs to find repeats, limit addresses and count visitors."""
    is_first = True
    for hit in hits:
        key_id, of_day, recent, address = hit.visitor  # type: ignore[misc]
        plan = _plan_visitor(
            names, hit.key, hit.day, key_id, of_day is not None, address is not None, len(recent)
        )
        if is_first:
            keys += plan.rule_keys
            args += plan.rule_args
            is_first = False
        _add_hit(keys, args, names, hit)
        args.append(of_day or b"")
        if plan.repeat_milliseconds:
            keys += [names.repeat(hashed) for hashed in recent]
            args.append(jitter.lengthen(plan.repeat_milliseconds))
        if plan.sketch_milliseconds:
            keys += plan.sketch_keys
            args += plan.sketch_field, jitter.lengthen(plan.sketch_milliseconds)
        if plan.address_milliseconds and address:
            interval, hashed = address
            keys.append(names.addresses(interval.name, hashed[0]))
            args += hashed[1 : 1 + ADDRESS_BYTES], jitter.lengthen(plan.address_milliseconds)


@cached_for_settings("HITCOUNT", maxsize=REMEMBERED_COUNTERS)
def _plan_visitor(
    names: RunKeys,
    key: CounterKey,
    day: datetime.date,
    key_id: str,
    is_identified: bool,
    is_limited: bool,
    recent: int,
) -> VisitorPlan:
    """Make the plan for visitors under one key, who may be identified or not, and have a limit."""
    config = conf.get_config()
    options = config.options_of(key.counter)
    is_daily = is_identified and options.repeat == "daily"
    is_counted = is_identified and options.visitors
    seconds = options.repeat if isinstance(options.repeat, int) else 0
    limit = (is_limited and options.per_address) or 0
    visitors = DailyVisitorsKey(key, day, key_id)
    return VisitorPlan(
        rule_args=(
            ("seconds" if seconds else options.repeat) if is_identified else "always",
            recent if seconds else 0,
            int(is_counted),
            RefusedKey(day, key.counter, REPEAT).field,
            Geometry(rate=config.repeat_error_rate).for_script if is_daily else "",
            VISITORS_SECONDS,
            limit,
            RefusedKey(day, key.counter, ADDRESS_LIMIT).field if limit else "",
        ),
        rule_keys=(
            *((names.seen(day, key_id),) if is_daily else ()),
            *((names.merged_sketches(day),) if is_counted else ()),
        ),
        sketch_keys=(
            names.sketch(visitors.text),
            names.sketches_of(key.content_type_id, key.object_id),
        ),
        sketch_field=visitors.text,
        repeat_milliseconds=seconds * 1000 if recent else 0,
        sketch_milliseconds=VISITORS_SECONDS * 1000 if is_counted else 0,
        address_milliseconds=(seconds or VISITORS_SECONDS) * 1000 if limit else 0,
    )
