"""
The world of a schedule: its states, and the steps between them.

A step lets one actor go on from the place where it is stopped to the next one. It is stopped before
each message to Redis and each statement, except those that cannot matter to others:

- the begin of a connection and what is asked of the server itself: only a restart changes these
  answers, and it is tried before and within the message that follows;
- reads of tables that no actor of the scenario ever writes;
- statements of a transaction after its first write: nobody sees them before the COMMIT, and what
  they see cannot change. So the transaction is one step, with the COMMIT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.laws.schedules import judge
from tests.laws.schedules.faults import NO_FAULT, Fault
from tests.laws.schedules.judge import Counts, Problem
from tests.laws.schedules.processes import Actor, Op
from tests.laws.schedules.states import State, Step
from tests.laws.schedules.tables import (
    NAMES,
    Query,
    Tables,
    TableState,
    run_in_transaction,
)
from tests.laws.schedules.valkey import EMPTY, Valkey

LOST_IN_DATABASE = (("OperationalError", "the connection was lost", None), None, (), -1, None)


COLD = {
    "django_content_type",
    "django_hitcount_dailyvisitors",
    "django_hitcount_deletedobject",
    "django_hitcount_seenvisitor",
}
"""Tables that no actor writes. It is an error if one does."""


class World:
    """The servers, and the actors of a scenario."""

    def __init__(self, valkey: Valkey, tables: Tables, keys: Sequence[str]) -> None:
        self.valkey = valkey
        self.tables = tables
        self.keys = keys
        """The primary keys of the objects, as text."""

        self.actors: list[Actor] = []
        self.trace: list[str] | None = None
        """What the actors ask, in words, if somebody wants to know."""

    def begin(self, actors: Sequence[Actor]) -> State:
        """Return the state before any actor has started."""
        self.actors = [*actors]
        return State(
            redis=self.valkey.first,
            tables=self.tables.first,
            nodes=tuple(actor.first for actor in actors),
            transactions=(None,) * len(actors),
            facts=judge.new_facts(objects=len(self.keys), actors=len(actors)),
            past=frozenset({(EMPTY, (0,) * len(self.keys))}),
        )

    def in_tables(self, state: TableState) -> Counts:
        return judge.counts_of(self.tables.sums(state)[0], self.keys)

    def can_go_on(self, state: State, number: int) -> bool:
        """Whether an actor has not ended, and does not wait for the lock of another one."""
        node = state.nodes[number]
        return node is not None and not self.is_locked(state, number, node.op)

    def is_locked(self, state: State, number: int, op: Op) -> bool:
        """Whether an operation has to wait for the lock of another actor."""
        if op[0] != "sql" or not any(state.transactions):
            return False
        own = state.transactions[number]
        others = [t for t in state.transactions if t and t is not own and t.has_written]
        return bool(others) and Query(*op[1:]).writes

    def step(self, state: State, number: int, fault: Fault = NO_FAULT) -> Step | None:
        """Let an actor go on to its next stop; None if the fault does not apply there."""
        return Walk(self, state, number, fault).run()

    def deliver(self, state: State) -> State:
        """Let the message arrive that is late, unless its server is gone."""
        assert state.late
        redis = self.valkey.run(state.redis, state.late)[1]
        past = state.past | {(redis.keys, state.facts.saved)}
        return state._replace(redis=redis, past=past, late=None)

    def is_cold(self, query: Query) -> bool:
        """Whether a statement only reads tables that nobody writes."""
        named = {name for name in query.tables if name in self.tables.names}
        if query.writes:
            written = NAMES.search(query.sql)
            assert written, query.sql
            assert written[1] not in COLD, f"{query.sql} writes a cold table"
        return not query.writes and named <= COLD


class Walk:
    """One step."""

    def __init__(self, world: World, state: State, number: int, fault: Fault) -> None:
        self.world = world
        self.fault: Fault | None = fault if fault.within_step else None
        self.number = number
        self.actor = world.actors[number]
        node = state.nodes[number]
        assert node
        self.node = node
        self.dies = fault.name == "die"
        self.is_dead = False
        self.step = Step(fault.before(world, state))
        self.before = self.step.state
        self.is_done = False
        self.is_writing = False

    def run(self) -> Step | None:
        state = self._walk()
        if self.fault is not None or (self.dies and not self.is_dead):
            return None
        nodes, transactions = [*state.nodes], [*state.transactions]
        has_ended = self.is_dead or self.node.op[0] == "end"
        nodes[self.number] = None if has_ended else self.node
        if has_ended:
            transactions[self.number] = None
            self._note_end()
            self._change(facts=judge.forget_actor(self.step.state.facts, self.number))
        before = self.before
        return self.step._replace(
            result=self.node.op[1] if self.node.op[0] == "end" else None,
            state=self.step.state._replace(
                nodes=tuple(nodes),
                transactions=tuple(transactions),
                last=None if has_ended else self.number,
            ),
            has_changed=(self.step.state.redis, self.step.state.tables)
            != (before.redis, before.tables),
        )

    def _walk(self) -> State:
        while self.node.op[0] != "end" and not self.is_dead:
            op = self.node.op
            if (self.is_done and self._is_stop(op)) or self.world.is_locked(
                self.step.state, self.number, op
            ):
                break
            if self.world.trace is not None and not self._is_chatter(op):
                self.world.trace.append(self._describe(op))
            answer = getattr(self, f"_{op[0]}")(*op[1:])
            if not self.is_dead:
                self.node = self.actor.after(self.node, answer)
        return self.step.state

    def _is_stop(self, op: Op) -> bool:
        if op[0] == "sql":
            own = self.step.state.transactions[self.number]
            query = Query(*op[1:])
            is_free = own is None or not own.has_written
            if query.word == "COMMIT":
                return not is_free and not self.is_writing
            is_bare = query.word in ("BEGIN", "ROLLBACK", "SAVEPOINT", "RELEASE")
            return is_free and not is_bare and not self.world.is_cold(query)
        if op[0] == "send":
            return not self.world.valkey.is_chatter(op[2])
        return op[0] in ("connect", "poll", "begin")

    def _is_chatter(self, op: Op) -> bool:
        return op[0] == "poll" or (op[0] == "send" and self.world.valkey.is_chatter(op[2]))

    def _describe(self, op: Op) -> str:
        if op[0] == "send":
            return f"sends {self.world.valkey.describe(op[2])}"
        if op[0] == "sql":
            return f"{op[1][:100]} {'' if op[2] is None else op[2]}"
        return " ".join(map(str, op))

    def _change(self, **changes: Any) -> None:
        self.step = self.step._replace(state=self.step.state._replace(**changes))

    def _connect(self) -> int | None:
        self.step = self.step._replace(has_gate=True)
        if self.fault and self.fault.name == "away":
            self.fault, self.is_done = None, True
            self._notice_failure()
            return None
        return self.step.state.redis.run

    def _poll(self, run: int) -> bool:
        self.step = self.step._replace(has_gate=True)
        if self.fault and self.fault.name == "away":
            return False
        return run == self.step.state.redis.run

    def _send(self, run: int, message: bytes) -> bytes | None:
        valkey, state = self.world.valkey, self.step.state
        if valkey.is_chatter(message):
            is_there = run == state.redis.run
            return valkey.run(state.redis, message)[0] if is_there else None
        self.is_done = True
        commands = len(valkey.parse(message))
        self.step = self.step._replace(touched="message", commands=commands)
        if run != state.redis.run:
            self._notice_failure()
            return None
        fault, self.fault = self.fault, None
        if fault and fault.name == "away":
            self.fault = fault
        reply, after = valkey.run(state.redis, message, fault.commands if fault else None)
        if fault is None or fault.has_run:
            self._change(redis=after)
            self._save()
        self._die_if_due()
        if fault and fault.name in ("lost", "late", "crash"):
            self._notice_failure()
            if fault.name == "late":
                self._change(late=message)
            if fault.name == "crash":
                self._change(**fault.restart(self.world, self.step.state)._asdict())
            return None
        return reply

    def _save(self) -> None:
        state = self.step.state
        self._change(past=state.past | {(state.redis.keys, state.facts.saved)})

    def _sql(self, sql: str, params: tuple[Any, ...] | None) -> Any:
        world, state, query = self.world, self.step.state, Query(sql, params)
        own = state.transactions[self.number]
        session = run_in_transaction(world.tables, state.tables, own, query)
        self.is_done = self.is_done or not world.is_cold(query)
        self.is_writing = self.is_writing or query.writes
        is_commit = query.word == "COMMIT" and own is not None and own.has_written
        is_write = is_commit or (query.writes and own is None)
        fault = self.fault if is_write else None
        transactions = [*state.transactions]
        transactions[self.number] = session.transaction
        if is_write:
            self.step = self.step._replace(touched=self.step.touched or "commit")
        if fault:
            self.fault = None
            self._notice_failure()
        is_run = fault is None or fault.has_run
        tables = session.committed if is_run else state.tables
        self._change(tables=tables, transactions=tuple(transactions))
        if is_write:
            self._die_if_due()
        return LOST_IN_DATABASE if fault else session.answer

    def _die_if_due(self) -> None:
        state = self.step.state
        has_changed = (state.redis, state.tables) != (self.before.redis, self.before.tables)
        self.is_dead = self.dies and has_changed

    def _notice_failure(self) -> None:
        self._change(facts=judge.notice_failure(self.step.state.facts, self.number))

    def _begin(self, recorded: tuple[int, ...]) -> None:
        self._change(facts=judge.begin(self.step.state.facts, self.number, recorded))

    def _told(self, results: Any) -> None:
        facts, problems = judge.end_call(self.step.state.facts, self.number, results)
        self._change(facts=facts)
        self._report(*problems)

    def _note_end(self) -> None:
        """A failure that an actor did not notice may not make it raise."""
        result = None if self.is_dead else self.node.op[1]
        facts = self.step.state.facts
        has_reason = self.number in facts.failed or facts.losses
        if isinstance(result, Exception) and not has_reason:
            self._report(Problem("raises", f"{self.actor.name} raised {describe(result)}"))

    def _report(self, *problems: Problem) -> None:
        self.step = self.step._replace(problems=(*self.step.problems, *problems))


def describe(error: BaseException) -> str:
    """Return an error, and those that it groups."""
    if isinstance(error, ExceptionGroup):
        return ", ".join(map(describe, error.exceptions))
    return f"{type(error).__name__}: {error}"
