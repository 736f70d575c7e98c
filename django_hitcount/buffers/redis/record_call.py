"""The call of the script that takes hits in."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from django_hitcount import conf
from django_hitcount.buffers.redis.bloom import Geometry
from django_hitcount.buffers.redis.keys import RunKeys
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.conf import CounterOptions
from django_hitcount.counters import jitter
from django_hitcount.counters.hits import NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, RefusedKey
from django_hitcount.counters.outcomes import ADDRESS_LIMIT, REPEAT
from django_hitcount.outages.command_ids import REMEMBERED_SECONDS, CommandId

VISITORS_SECONDS = 3 * 24 * 3600
"""How long Redis keeps what it knows of the visitors of a day, from the first of them on: for
that day, and for two more in which a hit of that day may come late or a flush may not run."""

ADDRESS_BYTES = 8
"""Of a hashed address within its share, of which there are 256 in a partition: that two of a
million are taken for one has a chance of 1 in 10^10."""

REMEMBERED_COUNTERS = 4096
"""Counters whose words a process keeps: some 3 MB."""

Word = str | int | bytes


class Words(NamedTuple):
    """What is sent for each hit on one counter on one day."""

    field: str
    daily_field: str
    total: str


class VisitorsWords(NamedTuple):
    """What is sent besides for each hit whose visitor is known."""

    field: str
    keys: tuple[str, ...]


def record_call(
    names: RunKeys, hits: Sequence[NewHits], numbered: CommandId, threshold: int
) -> ScriptCall:
    """
    The call that takes in hits of one partition.

    Either all of them or none have a visitor; if they have, they are of one counter and day.
    """
    keys = [*names.for_record, names.recorder(numbered.recorder)]
    args: list[Word] = [numbered.sequence, REMEMBERED_SECONDS, threshold]
    if all(hit.visitor for hit in hits):
        _add_judged(keys, args, names, hits)
    else:
        args.append("")
        for hit in hits:
            _add_hit(keys, args, names, hit)
    return ScriptCall("record", keys, args)


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _words(names: RunKeys, key: CounterKey, day: datetime.date) -> Words:
    return Words(key.text, key.on(day), names.total(key.text))


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _visitors_words(names: RunKeys, visitors: DailyVisitorsKey) -> VisitorsWords:
    of_object = names.sketches_of(visitors.key.content_type_id, visitors.key.object_id)
    return VisitorsWords(visitors.text, (names.sketch(visitors.text), of_object))


def _add_hit(keys: list[str], args: list[Word], names: RunKeys, hit: NewHits) -> None:
    field, daily_field, total = _words(names, hit.key, hit.day)
    refused = RefusedKey(hit.day, hit.key.counter, hit.refusal).text if hit.refusal else ""
    keys.append(total)
    args += field, daily_field, hit.amount, refused


def _add_judged(keys: list[str], args: list[Word], names: RunKeys, hits: Sequence[NewHits]) -> None:
    """What the script needs to know to tell repeats, to limit addresses and to count visitors."""
    config, first = conf.get_config(), hits[0]
    of_first: VisitorHashes = first.visitor  # type: ignore[assignment]
    rule = _rule(
        config.options_of(first.key.counter),
        of_first.of_day is not None,
        of_first.address is not None,
        config.repeat_error_rate,
        first.key.counter,
        first.day,
        len(of_first.recent),
    )
    words, of_mark, of_sketch, of_address, is_daily = rule
    args += words
    for hit in hits:
        visitor: VisitorHashes = hit.visitor  # type: ignore[assignment]
        _add_hit(keys, args, names, hit)
        args.append(visitor.of_day or b"")
        if of_mark:
            keys += [names.repeat(mark) for mark in visitor.recent]
            args.append(jitter.lengthened(of_mark))
        if of_sketch:
            visitors = _visitors_words(names, DailyVisitorsKey(hit.key, hit.day, visitor.key_id))
            keys += visitors.keys
            args += visitors.field, jitter.lengthened(of_sketch)
        if of_address and visitor.address:
            interval, hashed = visitor.address
            keys.append(names.addresses(interval.name, hashed[0]))
            args += hashed[1 : 1 + ADDRESS_BYTES], jitter.lengthened(of_address)
    if is_daily:
        keys.append(names.seen(first.day, of_first.key_id))


class Rule(NamedTuple):
    """What is the same for all hits of a counter on a day."""

    words: tuple[Word, ...]
    mark_milliseconds: int
    sketch_milliseconds: int
    address_milliseconds: int
    is_daily: bool


@lru_cache(maxsize=64)
def _rule(
    options: CounterOptions,
    is_told: bool,
    is_limited: bool,
    error_rate: float,
    counter: str,
    day: datetime.date,
    recent: int,
) -> Rule:
    """What is judged of a visitor who can be told or not, and whose address is limited or not."""
    is_daily = is_told and options.repeat == "daily"
    is_counted = is_told and options.visitors
    seconds = options.repeat if isinstance(options.repeat, int) else 0
    limit = (is_limited and options.per_address) or 0
    words = (
        ("seconds" if seconds else options.repeat) if is_told else "always",
        recent if seconds else 0,
        int(is_counted),
        RefusedKey(day, counter, REPEAT).text,
        Geometry(rate=error_rate).for_script if is_daily else "",
        VISITORS_SECONDS,
        limit,
        RefusedKey(day, counter, ADDRESS_LIMIT).text if limit else "",
    )
    return Rule(
        words,
        seconds * 1000 if recent else 0,
        VISITORS_SECONDS * 1000 if is_counted else 0,
        (seconds or VISITORS_SECONDS) * 1000 if limit else 0,
        is_daily,
    )
