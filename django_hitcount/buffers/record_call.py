"""The call of the script that takes hits in."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from django_hitcount import conf, jitter
from django_hitcount.buffers.bloom import Geometry
from django_hitcount.buffers.exchange import Call
from django_hitcount.buffers.keys import RunKeys
from django_hitcount.buffers.recorders import REMEMBERED_SECONDS, Numbered
from django_hitcount.conf import CounterOptions
from django_hitcount.counters import CounterKey, Hits, Marks, Refused, VisitorsKey
from django_hitcount.refusals import REPEAT

VISITORS_SECONDS = 3 * 24 * 3600
"""How long Redis keeps what it knows of the visitors of a day, from the first of them on: for
that day, and for two more in which a hit of that day may come late or a flush may not run."""

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


def record_call(names: RunKeys, hits: Sequence[Hits], numbered: Numbered, threshold: int) -> Call:
    """
    The call that takes in hits of one partition.

    Either all of them or none have marks; if they have, they are of one counter and day.
    """
    keys = [*names.for_record, names.recorder(numbered.recorder)]
    args: list[Word] = [numbered.sequence, REMEMBERED_SECONDS, threshold]
    if all(hit.marks for hit in hits):
        _add_judged(keys, args, names, hits)
    else:
        args.append("")
        for hit in hits:
            words = _words(names, hit.key, hit.day)
            keys.append(words.total)
            args += words.field, words.daily_field, hit.amount, _refused_field(hit)
    return Call("record", keys, args)


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _words(names: RunKeys, key: CounterKey, day: datetime.date) -> Words:
    return Words(key.text, key.on(day), names.total(key.text))


@lru_cache(maxsize=REMEMBERED_COUNTERS)
def _visitors_words(names: RunKeys, visitors: VisitorsKey) -> VisitorsWords:
    of_object = names.sketches_of(visitors.key.content_type_id, visitors.key.object_id)
    return VisitorsWords(visitors.text, (names.sketch(visitors.text), of_object))


def _refused_field(hit: Hits) -> str:
    return Refused(hit.day, hit.key.counter, hit.refusal).text if hit.refusal else ""


def _add_judged(keys: list[str], args: list[Word], names: RunKeys, hits: Sequence[Hits]) -> None:
    """What the script needs to know to tell repeats, and to count visitors."""
    config, first = conf.get_config(), hits[0]
    options = config.options_of(first.key.counter)
    recent = len(first.marks.recent) if first.marks else 0
    args += _rule(options, config.repeat_error_rate, first.key.counter, first.day, recent)
    repeat_seconds = options.repeat if isinstance(options.repeat, int) else 0
    of_marks = _milliseconds_kept(repeat_seconds, len(hits))
    of_sketches = _milliseconds_kept(VISITORS_SECONDS if options.visitors else 0, len(hits))
    for hit, of_mark, of_sketch in zip(hits, of_marks, of_sketches, strict=True):
        marks: Marks = hit.marks  # type: ignore[assignment]
        words = _words(names, hit.key, hit.day)
        visitors = _visitors_words(names, VisitorsKey(hit.key, hit.day, marks.key_id))
        keys.append(words.total)
        for mark in marks.recent:
            keys.append(names.repeat(mark))
        if options.visitors:
            keys += visitors.keys
        args += words.field, words.daily_field, hit.amount, _refused_field(hit)
        args += marks.own, of_mark, visitors.field, of_sketch
    if options.repeat == "daily":
        keys.append(names.seen(first.day, marks.key_id))


def _milliseconds_kept(seconds: int, count: int) -> list[int]:
    """How long Redis keeps so many keys for ``seconds``; 0 if there are none."""
    return jitter.lengthened(seconds * 1000, count=count) if seconds else [0] * count


@lru_cache(maxsize=64)
def _rule(
    options: CounterOptions, error_rate: float, counter: str, day: datetime.date, recent: int
) -> tuple[Word, ...]:
    """The same words for all hits of a counter on a day."""
    is_daily = options.repeat == "daily"
    return (
        "seconds" if isinstance(options.repeat, int) else options.repeat,
        recent,
        int(options.visitors),
        Refused(day, counter, REPEAT).text,
        Geometry(rate=error_rate).for_script if is_daily else "",
        VISITORS_SECONDS,
    )
