"""What an exploration does and finds: steps, schedules, and promises that were broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tests.laws.schedules.faults import Fault
from tests.laws.schedules.judge import Problem
from tests.laws.schedules.states import State


class Choice(NamedTuple):
    """One step of a schedule: who goes on, and what fails."""

    actor: int
    fault: Fault
    before: Choice | None


class Task(NamedTuple):
    """A step to try."""

    state: State
    choice: Choice


class Violation(NamedTuple):
    """A schedule that breaks a promise."""

    problem: Problem
    choices: tuple[Choice, ...]
    cost: int
    schedules: int
    """How many schedules were tried before it was found."""

    seconds: float


@dataclass
class Result:
    """What an exploration did."""

    ends: int = 0
    merged: int = 0
    """Schedules that led to a known state."""

    steps: int = 0
    cost: int = 0
    is_complete: bool = False
    """Whether all schedules up to the cost were tried."""

    seconds: float = 0.0
    violations: list[Violation] = field(default_factory=list)
    samples: list[tuple[Choice, ...]] = field(default_factory=list)
    """Some schedules."""

    @property
    def schedules(self) -> int:
        return self.ends + self.merged


def in_order(choice: Choice | None) -> tuple[Choice, ...]:
    """Return the steps of a schedule from the first to ``choice``."""
    found = []
    while choice:
        found.append(choice)
        choice = choice.before
    return tuple(found[::-1])
