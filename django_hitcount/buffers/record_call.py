"""The call of the script that takes hits in."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import lru_cache

from django_hitcount import conf
from django_hitcount.buffers.bloom import Geometry
from django_hitcount.buffers.exchange import Call
from django_hitcount.buffers.keys import PartitionKeys
from django_hitcount.buffers.recorders import REMEMBERED_SECONDS, Numbered
from django_hitcount.conf import CounterOptions
from django_hitcount.counters import Hits, Marks, Refused, VisitorsKey
from django_hitcount.refusals import REPEAT

VISITORS_SECONDS = 3 * 24 * 3600
"""How long Redis keeps what it knows of the visitors of a day, from the first of them on: for
that day, and for two more in which a hit of that day may come late or a flush may not run."""

Word = str | int | bytes


def record_call(
    names: PartitionKeys, hits: Sequence[Hits], numbered: Numbered, threshold: int
) -> Call:
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
            field = hit.key.text
            keys.append(names.total(field))
            args += [field, hit.key.on(hit.day), hit.amount, _refused_field(hit)]
    return Call("record", keys, args)


def _refused_field(hit: Hits) -> str:
    return Refused(hit.day, hit.key.counter, hit.refusal).text if hit.refusal else ""


def _add_judged(
    keys: list[str], args: list[Word], names: PartitionKeys, hits: Sequence[Hits]
) -> None:
    """What the script needs to know to tell repeats, and to count visitors."""
    config, first = conf.get_config(), hits[0]
    options = config.counters[first.key.counter]
    recent = len(first.marks.recent) if first.marks else 0
    args += _rule(options, config.repeat_error_rate, first.key.counter, first.day, recent)
    for hit in hits:
        marks: Marks = hit.marks  # type: ignore[assignment]
        key, field = hit.key, hit.key.text
        visitors = VisitorsKey(key, hit.day, marks.key_id).text
        keys.append(names.total(field))
        keys += map(names.repeat, marks.recent)
        if options.visitors:
            keys += names.sketch(visitors), names.sketches_of(key.content_type_id, key.object_id)
        args += [field, key.on(hit.day), hit.amount, _refused_field(hit), marks.own, visitors]
    if options.repeat == "daily":
        keys.append(names.seen(first.day, marks.key_id))


@lru_cache(maxsize=64)
def _rule(
    options: CounterOptions, error_rate: float, counter: str, day: datetime.date, recent: int
) -> tuple[Word, ...]:
    """The same words for all hits of a counter on a day."""
    is_daily = options.repeat == "daily"
    return (
        "seconds" if isinstance(options.repeat, int) else options.repeat,
        options.repeat * 1000 if isinstance(options.repeat, int) else 0,
        recent,
        VISITORS_SECONDS if options.visitors else 0,
        Refused(day, counter, REPEAT).text,
        Geometry(rate=error_rate).for_script if is_daily else "",
        VISITORS_SECONDS,
    )
