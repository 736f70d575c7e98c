"""
Faults, and where they are tried.

A fault belongs to the step of an actor. One that hits a server is tried right before a message to
it, or within: before any other step it would change nothing that an actor could find out, so the
order of these two does not matter. A death is tried after each step that has changed a server.
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

    keys: int | None = None
    """The state that Redis goes back to; None: it loses nothing."""

    key: bytes = b""
    """The key that is evicted."""

    @property
    def within_step(self) -> bool:
        return self.name in ("lost", "crash", "away")

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
        return state._replace(redis=redis, facts=facts)

    def restart(self, world: World, state: State) -> State:
        """Return the state after Redis was killed and started again."""
        keys = state.redis.keys if self.keys is None else self.keys
        redis = world.valkey.restarted(state.redis, keys)
        if keys == state.redis.keys:
            return state._replace(redis=redis)
        saved = max(counts for known, counts in state.past if known == keys)
        facts = judge.lose(state.facts, world.in_tables(state.tables), saved)
        return state._replace(redis=redis, facts=facts)


NO_FAULT = Fault()


def find_faults(world: World, state: State, normal: Step) -> Iterator[Fault]:
    """Return all that may fail in a step that went ``normal`` otherwise."""
    if normal.has_changed:
        yield Fault("die")
    if normal.touched == "commit":
        yield Fault("lost", has_run=True)
        yield Fault("lost", has_run=False)
    if normal.touched == "message":
        changed = (False, True) if normal.has_changed else (False,)
        for has_run in changed:
            yield Fault("lost", has_run=has_run)
            yield Fault("crash", has_run=has_run)
        if normal.has_gate:
            yield Fault("away")
        yield Fault("restart")
        yield from find_losses(world, state, crashes=changed)


def find_losses(world: World, state: State, *, crashes: tuple[bool, ...] = ()) -> Iterator[Fault]:
    """Return how Redis may lose memory."""
    now = state.redis.keys
    for keys in sorted({known for known, _ in state.past} - {now}):
        yield Fault("restart", keys=keys)
        for has_run in crashes:
            yield Fault("crash", has_run=has_run, keys=keys)
    if now != EMPTY:
        yield Fault("flushall")
    for key in world.valkey.names(state.redis):
        yield Fault("evict", key=key)
