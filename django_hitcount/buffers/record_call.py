"""The call of the script that takes hits in."""

from __future__ import annotations

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


@lru_cache(maxsize=8)
def _geometry(rate: float) -> bytes:
    return Geometry(rate=rate).for_script


def record_call(
    names: PartitionKeys, hits: Sequence[Hits], numbered: Numbered, threshold: int
) -> Call:
    """
    The call that takes in hits of one partition.

    Either all of them or none have marks; if they have, they are of one counter and day.
    """
    keys = [*names.for_record, names.recorder(numbered.recorder)]
    args: list[Word] = [numbered.sequence, REMEMBERED_SECONDS, threshold]
    judged = [(hit, hit.marks) for hit in hits if hit.marks]
    if len(judged) < len(hits):
        args.append("")
        for hit in hits:
            keys.append(names.total(hit.key.text))
            args += _words(hit)
    else:
        _add_judged(keys, args, names, judged)
    return Call("record", keys, args)


def _words(hit: Hits) -> list[Word]:
    refused = Refused(hit.day, hit.key.counter, hit.refusal).text if hit.refusal else ""
    return [hit.key.text, hit.key.on(hit.day), hit.amount, refused]


def _add_judged(
    keys: list[str], args: list[Word], names: PartitionKeys, judged: Sequence[tuple[Hits, Marks]]
) -> None:
    """What the script needs to know to tell repeats, and to count visitors."""
    first, marks = judged[0]
    options = conf.get_config().counters[first.key.counter]
    args += _rule(options, first, marks)
    for hit, marks in judged:
        field = VisitorsKey(hit.key, hit.day, marks.key_id).text
        keys.append(names.total(hit.key.text))
        keys += map(names.repeat, marks.recent)
        if options.visitors:
            keys += names.sketch(field), names.sketches_of(*hit.key[:2])
        args += [*_words(hit), marks.own, field]
    if options.repeat == "daily":
        keys.append(names.seen(first.day, marks.key_id))


def _rule(options: CounterOptions, hit: Hits, marks: Marks) -> list[Word]:
    is_daily = options.repeat == "daily"
    return [
        "seconds" if isinstance(options.repeat, int) else options.repeat,
        options.repeat * 1000 if isinstance(options.repeat, int) else 0,
        len(marks.recent),
        VISITORS_SECONDS if options.visitors else 0,
        Refused(hit.day, hit.key.counter, REPEAT).text,
        _geometry(conf.get_config().repeat_error_rate) if is_daily else "",
        VISITORS_SECONDS,
    ]
