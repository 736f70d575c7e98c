"""
Schedules as text, to print and to try again.

Each line is a step: the actor, and what fails. Restarts name the moment to whose state Redis goes
back: 0 is an empty Redis, 1 is that after the setup, and each further message that changes Redis
makes another moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.laws.schedules import judge
from tests.laws.schedules.explorer import Explorer
from tests.laws.schedules.faults import NO_FAULT, Fault
from tests.laws.schedules.judge import End, Problem
from tests.laws.schedules.results import Choice
from tests.laws.schedules.states import State
from tests.laws.schedules.valkey import EMPTY


class Player:
    """Goes through one schedule, from its start to its end."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.world = explorer.world
        self.state: State = explorer.first
        self.moments = [EMPTY, self.state.redis.keys]
        self.names = [*(actor.name for actor in explorer.actors), "late message"]
        self.lines: list[str] = []
        """The schedule."""

        self.story: list[str] = []
        """The schedule, with all that the actors asked."""

        self.problems: list[Problem] = []
        self.end: End | None = None

    def play(self, choices: Iterable[Choice]) -> None:
        for choice in choices:
            self._go(choice.actor, choice.fault)

    def play_lines(self, lines: Sequence[str]) -> None:
        for line in lines:
            name, _, fault = line.partition(": ")
            self._go(self.names.index(name), self._parse(fault))

    def _go(self, number: int, fault: Fault) -> None:
        name, words = self.names[number], self._format(fault)
        self.lines.append(f"{name}: {words}" if words else name)
        self.story.append(f"{len(self.lines)}. {self.lines[-1]}")
        if number == self.explorer.last:
            facts, self.end = self.explorer.end(self.state, fault)
            self.problems += judge.judge(facts, self.end)
            return
        before = self.state
        if number == self.explorer.wire:
            self.state = self.world.deliver(before)
        else:
            self._step(number, fault)
        for keys, _ in self.state.past - before.past:
            if keys not in self.moments:
                self.moments.append(keys)

    def _step(self, number: int, fault: Fault) -> None:
        self.world.trace = []
        step = self.world.step(self.state, number, fault)
        assert step, f"step {len(self.lines)} cannot be taken"
        self.story += [f"      {asked}" for asked in self.world.trace]
        self.world.trace = None
        self.problems += step.problems
        self.state = step.state

    def _format(self, fault: Fault) -> str:
        words = [fault.name] if fault.name else []
        if fault.has_run:
            words.append("ran")
        if fault.commands is not None:
            words.append(f"only {fault.commands}")
        if fault.keys is not None:
            words.append(f"@{self.moments.index(fault.keys)}")
        if fault.key:
            words.append(fault.key.decode())
        return " ".join(words)

    def _parse(self, text: str) -> Fault:
        if not text:
            return NO_FAULT
        name, *words = text.split()
        if name == "evict":
            return Fault(name, key=words[0].encode())
        at = [self.moments[int(word[1:])] for word in words if word[0] == "@"]
        commands = int(words[words.index("only") + 1]) if "only" in words else None
        keys = at[0] if at else None
        return Fault(name, has_run="ran" in words, commands=commands, keys=keys)


def replay(explorer: Explorer, lines: Sequence[str]) -> Player:
    """Try a schedule that was printed."""
    player = Player(explorer)
    player.play_lines(lines)
    return player


def tell(explorer: Explorer, choices: Iterable[Choice]) -> Player:
    """Go through a schedule that was explored."""
    player = Player(explorer)
    player.play(choices)
    return player
