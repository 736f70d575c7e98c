"""
Go through the schedules of a scenario, the shortest first.

The cost of a schedule is the number of its faults, plus how often an actor is interrupted although
it could go on. Schedules are tried in the order of their cost. Two schedules that lead to the same
state go on in the same ways: the second is counted, and not tried to its end. A state has all that
can make a difference: the servers, what each actor knows (the answers that it got), the states that
Redis may still go back to, and the facts for the judge.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django_hitcount.maintenance.flushing import flush_hits
from tests.laws.schedules import judge
from tests.laws.schedules.faults import NO_FAULT, Fault, find_faults, find_losses
from tests.laws.schedules.judge import End, Facts, Problem
from tests.laws.schedules.processes import Actor
from tests.laws.schedules.results import Choice, Result, Task, Violation, in_order
from tests.laws.schedules.scenarios import KEYS, Scenario, read_all
from tests.laws.schedules.states import State, Step
from tests.laws.schedules.world import World, describe

FLUSHES = 6
"""How many processes flush in the end, until one finds nothing. One should do."""

AN_HOUR = 3600.0

SAMPLE = 100
"""Of so many schedules, one is kept as a sample."""


class Explorer:
    """Explores one scenario."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = scenario
        clocks = {"setup": -AN_HOUR, "end": AN_HOUR, "end, totals": AN_HOUR, **scenario.clocks}
        scripts = [
            *scenario.actors.items(),
            ("setup", scenario.setup),
            ("end", flush_hits),
            ("end, totals", read_all),
        ]
        self.actors = [
            Actor(name, n, script, clock=clocks.get(name, 0.0))
            for n, (name, script) in enumerate(scripts)
        ]
        self.setup, self.last, self.reader = range(len(self.actors) - 3, len(self.actors))
        self.wire = len(self.actors)
        """In place of an actor: the message that is late arrives."""

        self._ends: dict[Any, End] = {}
        self.first = self._begin()

    def _begin(self) -> State:
        """Return the state after the setup."""
        state = self.world.begin(self.actors)
        empty = state.past
        state = self.run_to_end(state, self.setup).state
        past = empty | {(state.redis.keys, state.facts.saved)}
        return state._replace(past=past, last=None)

    def run_to_end(self, state: State, number: int, fault: Fault = NO_FAULT) -> Step:
        """Let one actor go on until it ends."""
        step = self.world.step(state, number, fault)
        assert step
        while step.state.nodes[number]:
            following = self.world.step(step.state, number)
            assert following
            step = following
        return step

    def explore(
        self, *, schedules: int | None = None, seconds: float | None = None, stop_at: int = 1
    ) -> Result:
        """
        Try schedules until enough were tried, ``stop_at`` different promises were seen broken, or
        no schedule of the scenario's cost is left.
        """
        search = Search(self, schedules=schedules, seconds=seconds, stop_at=stop_at)
        search.run()
        return search.result

    def movable(self, state: State) -> list[int]:
        """Return the actors that can go on. Of those with one script, the first starts first."""
        found, starting = [], set()
        for number in range(self.setup):
            actor = self.actors[number]
            if state.nodes[number] is actor.first:
                if actor.script in starting:
                    continue
                starting.add(actor.script)
            if self.world.can_go_on(state, number):
                found.append(number)
        return found

    def end(self, state: State, fault: Fault) -> tuple[Facts, End]:
        """Return what is true when all actors have ended, and what a new process then finds."""
        state = fault.before(self.world, state)
        known = (state.redis, state.tables)
        found = self._ends.get(known)
        if found is None:
            found = self._ends[known] = self._find_end(state)
        return state.facts, found

    def _find_end(self, state: State) -> End:
        error = "hits wait for ever"
        for _ in range(FLUSHES):
            step = self._start(state, self.last)
            state = step.state
            if isinstance(step.result, Exception):
                error = describe(step.result)
            elif not getattr(step.result, "batches", 0):
                error = ""
                break
        totals = self._start(state, self.reader).result
        slots, days = self.world.tables.sums(state.tables)
        tables, daily = judge.counts_of(slots, KEYS), judge.counts_of(days, KEYS)
        if isinstance(totals, tuple):
            return End(tables, daily, totals, error)
        return End(tables, daily, (), error or repr(totals))

    def _start(self, state: State, number: int) -> Step:
        """Let a new process begin and end."""
        nodes = [*state.nodes]
        nodes[number] = self.actors[number].first
        return self.run_to_end(state._replace(nodes=tuple(nodes)), number)


class Search:
    """One search, through states that it has not seen yet."""

    def __init__(
        self, explorer: Explorer, *, schedules: int | None, seconds: float | None, stop_at: int
    ) -> None:
        self.explorer = explorer
        self.world = explorer.world
        self.result = Result()
        self._most_schedules = schedules
        self._most_seconds = seconds
        self._stop_at = stop_at
        self._began_at = time.perf_counter()
        self._seen: set[Any] = set()
        self._tasks: dict[int, list[Task]] = defaultdict(list)
        self._going_on: list[Task] = []
        """Steps that cost no more than the ones before them. Their actors are still there."""

        self._random = random.Random(0)

    def run(self) -> None:
        self._visit(self.explorer.first, None, 0)
        result = self.result
        while (self._going_on or self._tasks) and not self._is_enough():
            if not self._going_on:
                result.cost = min(self._tasks)
                self._going_on.append(self._take(result.cost))
            self._try(self._going_on.pop(), result.cost)
        result.is_complete = not self._tasks and not self._going_on
        result.seconds = time.perf_counter() - self._began_at

    def _take(self, cost: int) -> Task:
        """Take any task of that cost: if there is no time for all, some of all kinds are tried."""
        tasks = self._tasks[cost]
        at = self._random.randrange(len(tasks))
        tasks[at], tasks[-1] = tasks[-1], tasks[at]
        task = tasks.pop()
        if not tasks:
            del self._tasks[cost]
        return task

    def _is_enough(self) -> bool:
        result, seconds = self.result, time.perf_counter() - self._began_at
        return (
            len({violation.problem.promise for violation in result.violations}) >= self._stop_at
            or (self._most_schedules is not None and result.schedules >= self._most_schedules)
            or (self._most_seconds is not None and seconds >= self._most_seconds)
        )

    def _try(self, task: Task, cost: int) -> None:
        actor, fault, _ = task.choice
        if actor == self.explorer.last:
            self._end(task.state, task.choice, cost)
            return
        self.result.steps += 1
        if actor == self.explorer.wire:
            self._visit(self.world.deliver(task.state), task.choice, cost)
            return
        step = self.world.step(task.state, actor, fault)
        if step is None:
            return
        self._report(step.problems, task.choice, cost)
        state = step.state
        if fault is not NO_FAULT:
            state = state._replace(faults=state.faults + 1)
        elif state.faults < self.explorer.scenario.most_faults:
            for found in self._wanted(find_faults(self.world, task.state, step)):
                self._add(Task(task.state, task.choice._replace(fault=found)), cost + 1)
        self._visit(state, task.choice, cost)

    def _visit(self, state: State, choice: Choice | None, cost: int) -> None:
        """Go on from a state, unless it is known."""
        can_fail = state.faults < self.explorer.scenario.most_faults
        key = state._replace(past=state.past if can_fail else frozenset())
        if key in self._seen:
            self.result.merged += 1
            return
        self._seen.add(key)
        movable = self.explorer.movable(state)
        for number in movable:
            switch = state.last in movable and number != state.last
            self._add(Task(state, Choice(number, NO_FAULT, choice)), cost + switch)
        if state.late is not None:
            self._add(Task(state, Choice(self.explorer.wire, NO_FAULT, choice)), cost)
        if not movable:
            self._add(Task(state, Choice(self.explorer.last, NO_FAULT, choice)), cost)
            if can_fail:
                for fault in self._wanted(find_losses(self.world, state)):
                    self._add(Task(state, Choice(self.explorer.last, fault, choice)), cost + 1)

    def _wanted(self, faults: Iterable[Fault]) -> list[Fault]:
        return [fault for fault in faults if fault.kind in self.explorer.scenario.faults]

    def _add(self, task: Task, cost: int) -> None:
        if cost == self.result.cost:
            self._going_on.append(task)
        elif cost <= self.explorer.scenario.most_cost:
            self._tasks[cost].append(task)

    def _end(self, state: State, choice: Choice, cost: int) -> None:
        self.result.ends += 1
        if self.result.ends % SAMPLE == 1:
            self.result.samples.append(in_order(choice))
        self._report(judge.judge(*self.explorer.end(state, choice.fault)), choice, cost)

    def _report(self, problems: Iterable[Problem], choice: Choice, cost: int) -> None:
        result, seconds = self.result, time.perf_counter() - self._began_at
        for problem in problems:
            violation = Violation(problem, in_order(choice), cost, result.schedules, seconds)
            result.violations.append(violation)
