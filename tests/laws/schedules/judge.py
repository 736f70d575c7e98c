"""
What must be true of a schedule, and the facts that decide it.

A hit is *begun* when its call starts, and *told* when the call returns that it counted. The tables
may never hold more hits than were begun, and never less than is *sure*:

- as long as Redis has lost nothing, all hits that were told;
- after a loss, what the tables held at that moment, or what had been told when the state was saved
  that Redis went back to; plus the hits whose calls began later.

A hit is *doubtful* if its actor noticed that Redis failed. It counts like any other, but if there
is a loss before or after it, nobody can know whether Redis had it. And a total need not show it at
once: it may wait in the database until the next flush.

If one key was evicted, the hits by day or the running total may be gone and the hits themselves be
there, or the other way round, and a restart may show that only later. These are then not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Counts = tuple[int, ...]
"""A number of hits for each object."""


class Call(NamedTuple):
    """A call that has begun."""

    losses: int
    at_least: Counts
    """What its totals must show at least."""


class Facts(NamedTuple):
    """What happened so far."""

    begun: Counts
    sure: Counts
    doubtful: Counts
    """How many of the sure hits are doubtful."""

    shown: Counts
    """The highest totals that were shown since the last loss."""

    calls: tuple[Call | None, ...]
    """The open call of each actor."""

    hidden: Counts
    """How many hits were told although their actor had noticed a failure: totals may lack them."""

    losses: int = 0
    is_torn: bool = False
    """Whether Redis lost some keys and kept others, so that its numbers may contradict."""

    failed: frozenset[int] = frozenset()
    """The actors that noticed a failure."""

    @property
    def saved(self) -> Counts:
        """The sure hits that Redis or the tables have now: not those that are doubtful."""
        return tuple(a - b for a, b in zip(self.sure, self.doubtful, strict=True))


class Problem(NamedTuple):
    """A promise that was broken."""

    promise: str
    what: str


def new_facts(*, objects: int, actors: int) -> Facts:
    zero = (0,) * objects
    return Facts(zero, zero, zero, zero, (None,) * actors, zero)


def plus(counts: Counts, at: int, n: int = 1) -> Counts:
    return (*counts[:at], counts[at] + n, *counts[at + 1 :])


def most(*counts: Counts) -> Counts:
    return tuple(map(max, zip(*counts, strict=True)))


def begin(facts: Facts, actor: int, recorded: Sequence[int]) -> Facts:
    """Begin a call that records a hit on each of some objects, or none: that reads."""
    begun = facts.begun
    for obj in recorded:
        begun = plus(begun, obj)
    known = tuple(a - b for a, b in zip(facts.sure, facts.hidden, strict=True))
    call = Call(facts.losses, most(known, facts.shown))
    return facts._replace(begun=begun, calls=_with(facts.calls, actor, call))


def end_call(
    facts: Facts, actor: int, results: Sequence[tuple[int, bool, int | None]]
) -> tuple[Facts, list[Problem]]:
    """
    End a call with the results of its objects: whether a hit was told, and the total shown.

    The total of a hit includes it.
    """
    call = facts.calls[actor]
    assert call
    facts = facts._replace(calls=_with(facts.calls, actor, None))
    problems: list[Problem] = []
    for obj, is_told, total in results:
        if is_told:
            facts = _tell(facts, actor, obj, is_sure=call.losses == facts.losses)
        if total is None:
            continue
        if total > facts.begun[obj]:
            problems.append(Problem("shown", f"{total} shown, {facts.begun[obj]} begun"))
        if call.losses == facts.losses and actor not in facts.failed and not facts.is_torn:
            at_least = call.at_least[obj] + is_told
            if total < at_least:
                problems.append(Problem("shown", f"{total} shown for at least {at_least}"))
            facts = facts._replace(shown=most(facts.shown, _only(facts.shown, obj, total)))
    return facts, problems


def _tell(facts: Facts, actor: int, obj: int, *, is_sure: bool) -> Facts:
    has_failed = actor in facts.failed
    is_sure = is_sure and not (has_failed and facts.losses)
    if is_sure:
        facts = facts._replace(sure=plus(facts.sure, obj))
    if is_sure and has_failed:
        facts = facts._replace(doubtful=plus(facts.doubtful, obj))
    if has_failed:
        facts = facts._replace(hidden=plus(facts.hidden, obj))
    return facts


def _only(counts: Counts, at: int, n: int) -> Counts:
    return tuple(n if obj == at else 0 for obj in range(len(counts)))


def _with(calls: tuple[Call | None, ...], actor: int, call: Call | None) -> Any:
    return (*calls[:actor], call, *calls[actor + 1 :])


def notice_failure(facts: Facts, actor: int) -> Facts:
    return facts._replace(failed=facts.failed | {actor})


def forget_actor(facts: Facts, actor: int) -> Facts:
    """An actor has ended: whatever it noticed, it tells nothing more."""
    calls = _with(facts.calls, actor, None)
    return facts._replace(calls=calls, failed=facts.failed - {actor})


def lose(facts: Facts, in_tables: Counts, saved: Counts, *, is_torn: bool = False) -> Facts:
    """
    Redis has lost memory; ``saved`` were the sure hits of the state that it has now.

    What it had lost before need not come back, even if that state has it.
    """
    zero = (0,) * len(saved)
    sure = tuple(map(min, facts.sure, most(in_tables, saved)))
    return facts._replace(
        sure=sure,
        doubtful=zero,
        shown=zero,
        losses=facts.losses + 1,
        is_torn=facts.is_torn or is_torn,
    )


class End(NamedTuple):
    """What a new process finds after it has flushed until nothing waited."""

    tables: Counts
    daily: Counts
    totals: Counts
    error: str
    """Why it could not flush; empty if nothing is left."""


def judge(facts: Facts, end: End) -> list[Problem]:
    """Return what is wrong in the end."""
    if end.error:
        return [Problem("flushed", end.error)]
    problems = []
    for obj, hits in enumerate(end.tables):
        if hits > facts.begun[obj]:
            problems.append(Problem("never twice", f"{hits} in the tables for {facts.begun[obj]}"))
        if hits < facts.sure[obj]:
            problems.append(
                Problem("nothing lost", f"{hits} in the tables for at least {facts.sure[obj]}")
            )
    if facts.is_torn:
        return problems
    if end.daily != end.tables:
        problems.append(Problem("days", f"{end.daily} by day, {end.tables} in all"))
    if end.totals != end.tables:
        problems.append(Problem("shown in the end", f"{end.totals} for {end.tables}"))
    return problems


def counts_of(sums: Mapping[str, int], keys: Sequence[str]) -> Counts:
    return tuple(sums.get(key, 0) for key in keys)
