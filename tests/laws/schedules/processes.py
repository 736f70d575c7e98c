"""
Actors: processes that stop whenever they ask a server something.

An actor is a greenlet that runs the real code. All that it knows of the world are the answers that
it got, so an actor that gets the same answers once more does the same. So actors need not be copied
where schedules part: the answers are a path in a tree, and an actor that is needed at some place of
the tree runs again from its start, with the answers that lead there.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import random
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from types import ModuleType
from typing import Any
from unittest import mock

import django_redis.pool
import greenlet
import redis.connection
import time_machine
from django.db import connections

from tests.laws.schedules.wires import StagedDatabase, StagedSocket, set_ask

Op = tuple[Any, ...]
"""What an actor asks: the name of the operation, and its arguments."""

Answer = Any

NOON = 1_772_190_000
"""The clock of the actors stands still, at noon of a day in February 2026."""

MOST_OPS = 2000
"""An actor that asks more than that will never end."""

IDLE_PROCESSES = 300
"""Actors that are kept where they stopped, in case that they go on."""

Script = Callable[[], object]


class NotDeterministic(Exception):
    """An actor got the answers of an earlier one, and asked for something else."""


class Process:
    """One run of a script, with what a process has of its own."""

    def __init__(self, number: int, script: Script, *, clock: float) -> None:
        self.number = number
        self.clock = clock
        self.memory: dict[Any, Any] = {}
        self.pools: dict[str, Any] = {}
        self.monotonic = 1000.0
        self.database = StagedDatabase()
        self._answers = 0
        self._greenlet = greenlet.greenlet(functools.partial(_run, script))

    def resume(self, *answer: Answer) -> Op:
        """Go on with an answer. Return what the actor asks next."""
        self._answers += 1
        _become(self, self._answers)
        try:
            op: Op = self._greenlet.switch(*answer)
            return op
        finally:
            _become(None, 0)

    def kill(self) -> None:
        """End it. What it asks while it ends reaches nobody."""
        _become(self, 0)
        while not self._greenlet.dead:
            self._greenlet.throw()
        _become(None, 0)


def _run(script: Script) -> Op:
    try:
        return ("end", script())
    except Exception as exc:  # noqa: BLE001 - the judge decides whether it may raise
        return ("end", exc.with_traceback(None))


_current: Process | None = None
_traveller: Any = None


def _become(process: Process | None, seed: int) -> None:
    """Let the code that runs now be that of ``process``; None: that of the test."""
    global _current
    before = _current.clock if _current else 0.0
    after = process.clock if process else 0.0
    if _traveller and before != after:
        _traveller.shift(after - before)
    _current = process
    if process:
        connections["default"] = process.database
        django_redis.pool.ConnectionFactory._pools = process.pools
        random.seed(seed * 1000 + process.number)


def ask(*op: Any) -> Answer:
    """Stop until the explorer answers."""
    parent = greenlet.getcurrent().parent
    assert parent
    return parent.switch(op)


class Node:
    """A place of an actor in the tree of answers: what it asks there."""

    __slots__ = ("answer", "children", "id", "op", "parent")
    count = 0

    def __init__(self, op: Op, parent: Node | None = None, answer: Answer = None) -> None:
        self.op = op
        self.parent = parent
        self.answer = answer
        self.children: dict[Answer, Node] = {}
        Node.count += 1
        self.id = Node.count

    def path(self) -> list[Node]:
        """Return the places from the first one to this one."""
        nodes = [self]
        while nodes[-1].parent:
            nodes.append(nodes[-1].parent)
        return nodes[::-1]


class Actor:
    """A script, and the tree of all that it did so far."""

    idle: OrderedDict[Node, Process] = OrderedDict()
    """The processes that wait for an answer, of all actors."""

    runs = 0

    def __init__(self, name: str, number: int, script: Script, *, clock: float = 0.0) -> None:
        self.name = name
        self.number = number
        self.script = script
        self.clock = clock
        self._first: Node | None = None

    @property
    def first(self) -> Node:
        """What it asks first."""
        if self._first is None:
            process, op = self._start()
            self._first = Node(op)
            self._keep(self._first, process)
        return self._first

    def after(self, node: Node, answer: Answer) -> Node:
        """Return the place that an answer leads to."""
        found = node.children.get(answer)
        if found is None:
            process = self.idle.pop(node, None) or self._go_to(node)
            found = node.children[answer] = Node(process.resume(answer), node, answer)
            self._keep(found, process)
        return found

    def _start(self) -> tuple[Process, Op]:
        Actor.runs += 1
        process = Process(self.number, self.script, clock=self.clock)
        return process, process.resume()

    def _go_to(self, node: Node) -> Process:
        process, op = self._start()
        path = node.path()
        assert len(path) < MOST_OPS, f"{self.name} does not end"
        for place, following in zip(path, [*path[1:], None], strict=True):
            if op != place.op:
                raise NotDeterministic(f"{self.name} asked {op}, and before {place.op}")
            if following is not None:
                op = process.resume(following.answer)
        return process

    def _keep(self, node: Node, process: Process) -> None:
        if node.op[0] == "end":
            return
        self.idle[node] = process
        if len(self.idle) > IDLE_PROCESSES:
            _, oldest = self.idle.popitem(last=False)
            oldest.kill()


class _PerProcess:
    """In place of a cached function without parameters: each actor has a value of its own."""

    def __init__(self, cached: Any) -> None:
        self._cached = cached
        self.__wrapped__ = cached.__wrapped__

    def __call__(self) -> Any:
        if _current is None:
            return self._cached()
        if self not in _current.memory:
            _current.memory[self] = self._cached.__wrapped__()
        return _current.memory[self]

    def cache_clear(self) -> None:
        if _current is None:
            self._cached.cache_clear()
        else:
            _current.memory.pop(self, None)


def _find_replacements(modules: list[ModuleType]) -> Iterator[tuple[ModuleType, str, Any]]:
    """Find what a process has of its own: its clock, its pauses, and what it remembers."""
    clocks = {id(time.monotonic): _monotonic, id(time.sleep): _sleep}
    caches: dict[int, _PerProcess] = {}
    for module in modules:
        for name, value in vars(module).items():
            if id(value) in clocks:
                yield module, name, clocks[id(value)]
            elif _remembers(value):
                yield module, name, caches.setdefault(id(value), _PerProcess(value))


def _remembers(value: object) -> bool:
    """Whether it is a cached function without parameters, of more than the settings."""
    if not isinstance(value, functools._lru_cache_wrapper):
        return False
    code = getattr(value.__wrapped__, "__code__", None)
    is_of_settings = value.__module__.startswith("django_hitcount.conf")
    return code is not None and not (code.co_argcount or code.co_kwonlyargcount or is_of_settings)


_real_monotonic = time.monotonic


def _monotonic() -> float:
    return _current.monotonic if _current else _real_monotonic()


def _sleep(seconds: float) -> None:
    assert _current
    _current.monotonic += seconds


@contextmanager
def stage() -> Iterator[None]:
    """Let actors run within the block."""
    global _traveller
    modules = [module for name, module in sys.modules.items() if name.startswith("django_hitcount")]
    own, pools = connections["default"], django_redis.pool.ConnectionFactory._pools
    state = random.getstate()
    with ExitStack() as stack:
        for module, name, value in [*_find_replacements([*modules, time])]:
            stack.enter_context(mock.patch.object(module, name, value))
        patches = [
            mock.patch.object(os, "urandom", random.randbytes),
            # redis-py looks up its own version for each pool, which takes as long as a flush.
            mock.patch.object(importlib.metadata, "version", functools.cache(version)),
            mock.patch.object(redis.connection.Connection, "_connect", side_effect=StagedSocket),
        ]
        for patch in patches:
            stack.enter_context(patch)
        set_ask(ask)
        _traveller = stack.enter_context(time_machine.travel(NOON, tick=False))
        try:
            yield
        finally:
            while Actor.idle:
                Actor.idle.popitem()[1].kill()
            _traveller = None
            connections["default"] = own
            django_redis.pool.ConnectionFactory._pools = pools
            random.setstate(state)


def pass_time(seconds: float) -> None:
    """Let a moment pass for the breakers of the actor. The clocks of all actors stand still."""
    _sleep(seconds)
