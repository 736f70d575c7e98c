"""Measure many writers on one object: with one row, with slots, and with Redis."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks import contenders, databases
from benchmarks.app.models import Article, DailyTotal, Total
from benchmarks.contenders import Contender
from benchmarks.crowd import WRITERS, Crowd
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands, times
from benchmarks.timing import alternate

SECONDS = 2.0
QUICK_SECONDS = 0.2
TURNS = 3
QUICK_TURNS = 1

BESIDE = {
    contenders.ONE_SLOT: contenders.ONE_ROW,
    contenders.TWO_SLOTS: contenders.TWO_ROWS,
    contenders.DATABASE: contenders.TWO_ROWS,
    contenders.REDIS: contenders.HINCRBY,
    contenders.VIEW_DATABASE: contenders.VIEW_ROW,
    contenders.VIEW_REDIS: contenders.VIEW_ROW,
}
"""What each of ours is compared with: what does the same work in the plain way."""


def run(options: Options) -> list[Target]:
    targets = []
    with Crowd() as crowd:
        for alias in options.databases:
            # SQLite allows one writer at a time, so slots change nothing.
            if alias != "sqlite":
                targets += _measure(crowd, alias, options)
    return targets


def _measure(crowd: Crowd, alias: str, options: Options) -> list[Target]:
    with databases.using(alias):
        article = Article.objects.create(title="Popular")
        Total.objects.create(article=article)
        DailyTotal.objects.create(article=article)
        seconds = QUICK_SECONDS if options.quick else SECONDS
        rates = alternate(
            {
                contender.name: partial(_rate, crowd, contender, article, seconds)
                for contender in contenders.ALL
            },
            turns=QUICK_TURNS if options.quick else TURNS,
        )
    _print(alias, rates)
    return [
        Target(
            what=f"{alias}: {WRITERS} writers, {ours.name} / {BESIDE[ours].name}",
            ratio=rates[ours.name] / rates[BESIDE[ours].name],
            at_least=1.5,
        )
        for ours in (contenders.ONE_SLOT, contenders.DATABASE, contenders.VIEW_DATABASE)
    ]


def _rate(crowd: Crowd, contender: Contender, article: Article, seconds: float) -> float:
    """Hits per second of all writers together. Checks that every hit was counted."""
    index, alias = contenders.ALL.index(contender), databases.current()
    with buffer(contender.buffer):
        before = contender.total(article)
        count, rate = crowd.write(index, alias, article.pk, seconds)
        counted = contender.total(article) - before
    if counted != count:
        raise AssertionError(f"{contender.name}: {count} hits were written, {counted} counted")
    return rate


def _print(alias: str, rates: Mapping[str, float]) -> None:
    rows = []
    for contender in contenders.ALL:
        rate = rates[contender.name]
        row = [contender.name, thousands(rate), times(rate / rates[contenders.ONE_ROW.name])]
        if beside := BESIDE.get(contender):
            rows.append([*row, times(rate / rates[beside.name]), beside.name])
        else:
            rows.append([*row, "", ""])
    print_table(
        f"{WRITERS} writers on one object, {alias}",
        ["", "hits/s", "one row", "ratio", "beside what does the same"],
        rows,
    )
