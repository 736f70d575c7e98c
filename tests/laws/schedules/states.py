"""The states of a schedule's world."""

from __future__ import annotations

from typing import NamedTuple

from tests.laws.schedules.judge import Counts, Facts, Problem
from tests.laws.schedules.processes import Node
from tests.laws.schedules.tables import TableState, Transaction
from tests.laws.schedules.valkey import RedisState


class State(NamedTuple):
    """The state of the world between two steps."""

    redis: RedisState
    tables: TableState
    nodes: tuple[Node | None, ...]
    """Where each actor is; None if it has ended or died."""

    transactions: tuple[Transaction | None, ...]
    facts: Facts
    past: frozenset[tuple[int, Counts]]
    """The states that Redis may go back to, with the sure hits of each."""

    late: bytes | None = None
    """A message that is on its way, although its sender no longer waits for the answer."""

    faults: int = 0
    last: int | None = None
    """The actor that made the last step, if it can go on."""


class Step(NamedTuple):
    """What a step led to."""

    state: State
    problems: tuple[Problem, ...] = ()
    touched: str = ""
    """What a fault could have hit: "message", "commit", or nothing."""

    commands: int = 0
    """How many commands the message had."""

    has_changed: bool = False
    """Whether the servers have changed."""

    result: object = None
    """What the actor returned, or the exception that it raised."""

    has_gate: bool = False
    """Whether the actor connected, or looked whether its connection was still open."""
