"""
Faults, and where they are tried.

A fault belongs to the step of an actor. One that hits a server is tried right before a message to
it, or within: before any other step it would change nothing that an actor could find out, so the
order of these two does not matter. A death is tried after each step that has changed a server.

A message that is late never arrives if Redis loses memory before: no number in it could then show
that its sender has sent it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tests.laws.schedules import judge
from tests.laws.schedules.valkey import EMPTY

if TYPE_CHECKING:
    from tests.laws.schedules.states import State, Step
    from tests.laws.schedules.world import World


class Fault(NamedTuple):
    """What fails in a step."""

    name: str = ""
    has_run: bool = False
    """Whether the message or the COMMIT was run, although its answer is lost."""

    commands: int | None = None
    """How many commands of the message were run; None: all of them."""

    keys: int | None = None
    """The state that Redis goes back to; None: it loses nothing."""

    key: bytes = b""
    """The key that is evicted."""

    @property
    def within_step(self) -> bool:
        return self.name in ("lost", "late", "crash", "away")

    @property
    def kind(self) -> str:
        """The name of what fails, as in ALL_FAULTS of scenarios.py."""
        return self.name if self.keys is None else "rewind"

    def before(self, world: World, state: State) -> State:
        """Return the state with what happens before the step."""
        if self.name == "restart":
            return self.restart(world, state)
        if self.name == "flushall":
            redis = state.redis._replace(keys=EMPTY)
        elif self.name == "evict":
            redis = world.valkey.without(state.redis, self.key)
        else:
            return state
        nothing = (0,) * len(world.keys)
        in_tables, is_torn = world.in_tables(state.tables), self.name == "evict"
        facts = judge.lose(state.facts, in_tables, nothing, is_torn=is_torn)
        return state._replace(redis=redis, facts=facts, late=None)

    def restart(self, world: World, state: State) -> State:
        """Return the state after Redis was killed and started again."""
        keys = state.redis.keys if self.keys is None else self.keys
        redis = world.valkey.restarted(state.redis, keys)
        is_behind = keys != state.redis.keys
        state = state._replace(redis=redis, late=None)
        if not is_behind:
            return state
        saved = max(counts for known, counts in state.past if known == keys)
        return state._replace(facts=judge.lose(state.facts, world.in_tables(state.tables), saved))


NO_FAULT = Fault()


def find_faults(world: World, state: State, normal: Step) -> Iterator[Fault]:
    """Return all that may fail in a step that went ``normal`` otherwise."""
    if normal.has_changed:
        yield Fault("die")
    if normal.touched == "commit":
        yield Fault("lost", has_run=True)
        yield Fault("lost", has_run=False)
    if normal.touched == "message":
        if normal.has_gate:
            yield Fault("away")
        yield Fault("restart")
        if normal.has_changed:
            yield Fault("late")
        ways = [*_ways_to_fail(normal)]
        for has_run, commands in ways:
            yield Fault("lost", has_run=has_run, commands=commands)
            yield Fault("crash", has_run=has_run, commands=commands)
        for keys in _earlier(state):
            for has_run, commands in ways:
                yield Fault("crash", has_run=has_run, commands=commands, keys=keys)
        yield from find_losses(world, state)


def _ways_to_fail(normal: Step) -> Iterator[tuple[bool, int | None]]:
    """Return how much of a message may be run: nothing, all of it, or its first commands."""
    yield False, None
    if normal.has_changed:
        yield True, None
        for commands in range(1, normal.commands):
            yield True, commands


def _earlier(state: State) -> list[int]:
    """Return the states that Redis may go back to."""
    return sorted({keys for keys, _ in state.past} - {state.redis.keys})


def find_losses(world: World, state: State) -> Iterator[Fault]:
    """Return how Redis may lose memory before a step."""
    now = state.redis.keys
    for keys in _earlier(state):
        yield Fault("restart", keys=keys)
    if now != EMPTY:
        yield Fault("flushall")
    for key in world.valkey.names(state.redis):
        yield Fault("evict", key=key)
