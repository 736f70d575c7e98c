"""Measure things in turns, so that whatever else the machine does affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")

CALLS_PER_TURN = 20
"""Calls in a row: enough to warm caches, too few for the machine's load to change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Something whose calls are timed one by one."""

    name: str
    run: Callable[[Any], object]
    prepare: Callable[[], Any] = field(default=lambda: None)
    """Makes the argument for one call of ``run``; not timed."""

    surroundings: Callable[[], AbstractContextManager[Any]] = nullcontext
    """The context that a turn runs in."""


def time_calls(subjects: Sequence[Subject], *, turns: int) -> Mapping[str, float]:
    """Median seconds of a call by subject name; the subjects take turns."""
    seconds: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for _ in range(turns):
        for subject in subjects:
            seconds[subject.name] += _turn(subject)
    return {name: median(values) for name, values in seconds.items()}


def _turn(subject: Subject) -> list[float]:
    with subject.surroundings():
        subject.run(subject.prepare())
        return [_time(subject) for _ in range(CALLS_PER_TURN)]


def _time(subject: Subject) -> float:
    prepared = subject.prepare()
    return seconds_of(lambda: subject.run(prepared))


def seconds_of(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(measures: Mapping[T, Callable[[], float]], *, turns: int) -> dict[T, float]:
    """Median figure by name; the measures take turns, in reverse order every other time."""
    figures: dict[T, list[float]] = {name: [] for name in measures}
    for turn in range(turns):
        for name in [*measures][:: 1 if turn % 2 == 0 else -1]:
            figures[name].append(measures[name]())
    return {name: median(values) for name, values in figures.items()}
