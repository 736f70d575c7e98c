"""
The call of ``lua/record.lua``, and the meaning of its reply.

The script reads the keys and the arguments in order. If you change the order, change it in both.

Most commands record one hit. Its call is packed once for each counter, day and kind of visitor,
with gaps for what differs from hit to hit: see pack_hit().
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NamedTuple

from django_hitcount import conf
from django_hitcount.buffers.redis.keys import VISITORS_SECONDS, RunKeys, database_prefix, run_keys
from django_hitcount.buffers.redis.link import Reply
from django_hitcount.buffers.redis.reading import Unknown
from django_hitcount.buffers.redis.scripts import GAP, PackedCall, ScriptCall, fill_gaps, pack_gaps
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters.batches import RecordResult
from django_hitcount.counters.days import lengthen
from django_hitcount.counters.hits import (
    ADDRESS_LIMIT,
    REPEAT,
    AddressHash,
    NewHits,
    VisitorHashes,
)
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.outages.missed_records import CommandId

ADDRESS_BYTES = 8
"""How many bytes of an address hash name the address in Redis. They follow the first byte, which
selects one of 256 Redis hashes: PartitionKeys.addresses(). Among a million addresses, two have the
same bytes with a chance of 1 in 10^10."""

REMEMBERED_COUNTERS = 2048
"""Counters whose calls a process caches: in 3 MB, or in 6 MB if they have visitors."""

SILENT = "-"
"""In place of the field of refused hits, which is empty for a hit that nothing has refused yet: if
Redis refuses it, no refused hit is counted."""

VERDICTS = (None, REPEAT, ADDRESS_LIMIT)
"""The refusal of a hit, by the number that the script returns for it."""

Argument = str | int | bytes

VisitorKind = tuple[str, bool, bool, int]
"""What is the same for many visitors: the id of their key, whether they are identified, whether
their addresses have a limit, and how many recent hashes they have."""


class HitPlan(NamedTuple):
    """What is sent with each hit on one counter and day, of one amount and kind of visitor."""

    rule_keys: tuple[str, ...]
    rule_args: tuple[Argument, ...]
    """The rule, and what else all hits of a call share."""

    keys: tuple[str, ...]
    args: tuple[Argument, ...]
    names: RunKeys
    repeat_milliseconds: int = 0
    """0 if the rule does not apply, as the other times."""

    sketch_milliseconds: int = 0
    address_milliseconds: int = 0

    def list_own_words(self, visitor: VisitorHashes) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and the arguments that differ from visitor to visitor."""
        keys, args = list[bytes](), [visitor.of_day or b""]
        if self.repeat_milliseconds:
            keys += [self.names.repeat(hashed).encode() for hashed in visitor.recent]
            args.append(b"%d" % lengthen(self.repeat_milliseconds))
        if self.sketch_milliseconds:
            args.append(b"%d" % lengthen(self.sketch_milliseconds))
        if self.address_milliseconds and visitor.address:
            interval, _, hashed = visitor.address
            keys.append(self.names.addresses(interval, hashed[0]).encode())
            args.append(hashed[1 : 1 + ADDRESS_BYTES])
            args.append(b"%d" % lengthen(self.address_milliseconds))
        return keys, args


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
    plans = [
        _plan_hit(names, *hit[:4], hit.visitor and _kind_of(hit.visitor), hit.counts_refusal)
        for hit in hits
    ]
    recorder, number, _ = command_id
    keys: list[str | bytes] = [*names.for_record, *plans[0].rule_keys]
    args: list[Argument] = [recorder, number, expected, threshold, len(hits), *plans[0].rule_args]
    for hit, plan in zip(hits, plans, strict=True):
        keys += plan.keys
        args += plan.args
        if hit.visitor:
            own_keys, own_args = plan.list_own_words(hit.visitor)
            keys += own_keys
            args += own_args
    return ScriptCall("record", keys, args)


def pack_hit(hit: NewHits, command_id: CommandId) -> PackedCall:
    """
    Make the call that records one hit.

    If it is in doubt, build_record_call() makes the call that is sent again.
    """
    recorder, number, run_id = command_id
    key, day, amount, refusal, visitor, counts_refusal = hit
    kind = visitor and _kind_of(visitor)
    text, plan = _pack_like(
        database_prefix(), run_id, key, day, amount, refusal, kind, counts_refusal
    )
    words = [recorder.encode(), b"%d" % number]
    if visitor:
        keys, args = plan.list_own_words(visitor)
        words = [*keys, *words, *args]
    return fill_gaps("record", text, words)


def read_one_result(reply: Reply, hit: NewHits) -> RecordResult | None:
    """Convert the reply to the call that recorded one hit; None if it says more than a result."""
    if type(reply) is int:
        return RecordResult(reply, None)  # It counts, as most do.
    if type(reply) is not list or len(reply) != 2:
        return None
    total, verdict = reply
    return RecordResult(int(total), hit.refusal or VERDICTS[verdict])


def read_reply(
    reply: Reply, hits: Sequence[NewHits]
) -> tuple[list[RecordResult], bool, Unknown | None]:
    """
    Convert the reply to the call that recorded ``hits``.

    Also returns whether this call brought the number of pending counters over FLUSH_THRESHOLD, and
    what Redis holds of counters whose totals it does not know, or None if it knows all.
    """
    if result := read_one_result(reply, hits[0]):
        return [result], False, None
    is_full, totals, refusals, held = reply
    results = [
        RecordResult(None if total is None else int(total), hit.refusal or VERDICTS[refusal])
        for hit, total, refusal in zip(hits, totals, refusals, strict=True)
    ]
    missing = [hit.key for hit, result in zip(hits, results, strict=True) if result.total is None]
    return results, bool(is_full), Unknown(missing, *held) if held else None


def _kind_of(visitor: VisitorHashes) -> VisitorKind:
    key_id, of_day, recent, address = visitor
    return key_id, of_day is not None, address is not None, len(recent)


@cached_for_settings("HITCOUNT", maxsize=REMEMBERED_COUNTERS)
def _pack_like(
    prefix: str,
    run_id: str,
    key: CounterKey,
    day: datetime.date,
    amount: int,
    refusal: str | None,
    kind: VisitorKind | None,
    counts_refusal: bool,
) -> tuple[bytes, HitPlan]:
    """
    Pack the call of one hit like these, with gaps for the command's id and the visitor's own words.

    ``prefix`` is the beginning of all keys: it only tells apart what is cached.
    """
    config = conf.get_config()
    names = run_keys(key.partition(config.partitions), run_id)
    plan = _plan_hit(names, key, day, amount, refusal, kind, counts_refusal)
    rule_args, last_args = plan.rule_args, list[Argument]()
    gaps: tuple[list[str], list[Argument]] = [], []
    if kind:
        own_keys, own_args = plan.list_own_words(_make_stand_in(kind, day))
        gaps = [GAP] * len(own_keys), [GAP] * len(own_args)
    elif refusal is None and amount > 0:
        rule_args, last_args = ("common",), [key.model_on(day)]
    keys = [*names.for_record, *plan.rule_keys, *plan.keys, *gaps[0]]
    args = [
        GAP,
        GAP,
        "",
        config.flush_threshold or 0,
        1,
        *rule_args,
        *plan.args,
        *last_args,
        *gaps[1],
    ]
    return pack_gaps(ScriptCall("record", keys, args), run_id), plan


def _make_stand_in(kind: VisitorKind, day: datetime.date) -> VisitorHashes:
    """Make a visitor of a kind, whose hashes say nothing."""
    key_id, is_identified, has_limit, recent = kind
    address = AddressHash("", day, b"\0") if has_limit else None
    return VisitorHashes(key_id, b"" if is_identified else None, (b"",) * recent, address)


@cached_for_settings("HITCOUNT", maxsize=REMEMBERED_COUNTERS)
def _plan_hit(
    names: RunKeys,
    key: CounterKey,
    day: datetime.date,
    amount: int,
    refusal: str | None,
    kind: VisitorKind | None,
    counts_refusal: bool,
) -> HitPlan:
    total = names.total(key.text)
    refused = "" if counts_refusal or not kind else SILENT
    if refusal:
        refused = RefusedKey(day, key.counter, refusal).field
    args: tuple[Argument, ...] = key.on(day), amount, refused
    if kind is None:
        return HitPlan((), ("",), (total,), args, names)
    key_id, is_identified, has_limit, recent = kind
    options = conf.get_config().options_of(key.counter)
    is_daily = is_identified and options.repeat == "daily"
    is_counted = is_identified and options.visitors
    seconds = options.repeat if isinstance(options.repeat, int) else 0
    limit = options.per_address or 0 if has_limit else 0
    sketch = DailyVisitorsKey(key, day, key_id).text
    return HitPlan(
        rule_keys=(
            *((names.seen(day, key_id),) if is_daily else ()),
            *((names.merged_sketches(day),) if is_counted else ()),
        ),
        rule_args=(
            ("seconds" if seconds else options.repeat) if is_identified else "always",
            recent if seconds else 0,
            int(is_counted),
            RefusedKey(day, key.counter, REPEAT).field,
            VISITORS_SECONDS,
            limit,
            RefusedKey(day, key.counter, ADDRESS_LIMIT).field if limit else "",
        ),
        keys=(
            (total, names.sketch(sketch), names.sketches_of(*key[:2])) if is_counted else (total,)
        ),
        args=(*args, sketch) if is_counted else args,
        names=names,
        repeat_milliseconds=seconds * 1000 if recent else 0,
        sketch_milliseconds=VISITORS_SECONDS * 1000 if is_counted else 0,
        address_milliseconds=(seconds or VISITORS_SECONDS) * 1000 if limit else 0,
    )
