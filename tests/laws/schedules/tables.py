"""
The states of the database: SQLite in memory. A statement in a state is run once, and remembered.

Transactions are those of SQLite with a write-ahead log: a transaction sees the tables as they were
at its first statement, one at a time writes, and COMMIT makes all of it seen at once.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Any, NamedTuple

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.backends.sqlite3.base import DatabaseWrapper

from django_hitcount.models import DailyHitSlot, HitSlot
from tests.app.models import Article
from tests.laws.schedules.wires import settings_of

TableState = int
"""The number of a content of all tables."""

QueryAnswer = tuple[Any, ...]
"""(error or None, description, rows, rowcount, lastrowid)"""

NOTHING: QueryAnswer = (None, None, (), -1, None)
NAMES = re.compile(r'"(\w+)"')
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class Query(NamedTuple):
    """A statement with its parameters."""

    sql: str
    params: tuple[Any, ...] | None

    @property
    def word(self) -> str:
        """BEGIN, SELECT, ..."""
        return self.sql.split(None, 1)[0].rstrip(";").upper()

    @property
    def writes(self) -> bool:
        return self.word in WRITES

    @property
    def tables(self) -> set[str]:
        """The tables that it names, and more: any quoted name."""
        return {*NAMES.findall(self.sql)}


class Tables:
    """Runs statements in any state of the tables."""

    def __init__(self) -> None:
        self._database = _Database(settings_of("default"), "default")
        self._database.ensure_connection()
        self._raw: sqlite3.Connection = self._database.connection
        self._raw.execute("PRAGMA page_size = 1024")
        self.names: list[str] = []
        self._contents: list[bytes] = []
        self._ids: dict[Any, TableState] = {}
        self._answers: dict[tuple[TableState, Query], tuple[QueryAnswer, TableState]] = {}
        self._sums: dict[TableState, tuple[dict[str, int], dict[str, int]]] = {}
        self._loaded: TableState = 0
        self.runs = 0
        self.first = self._create()

    def _create(self) -> TableState:
        counts = apps.get_app_config("django_hitcount").get_models()
        with self._database.schema_editor(atomic=False) as editor:
            for model in (ContentType, *counts, Article):
                editor.create_model(model)
        rows = self._raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self.names = sorted(name for (name,) in rows)
        return self._remember()

    def close(self) -> None:
        self._raw.close()

    def add_content_type(self, content_type: ContentType) -> None:
        """Insert a row before any actor begins."""
        self._raw.execute(
            "INSERT INTO django_content_type (id, app_label, model) VALUES (?, ?, ?)",
            (content_type.pk, content_type.app_label, content_type.model),
        )
        self.first = self._remember()

    def _remember(self) -> TableState:
        """Return the number of what the tables contain now."""
        content = tuple(
            tuple(self._raw.execute(f"SELECT * FROM {name} ORDER BY rowid")) for name in self.names
        )
        found = self._ids.get(content)
        if found is None:
            found = self._ids[content] = len(self._contents)
            self._contents.append(self._raw.serialize())
            self._loaded = found
        return found

    def run(self, state: TableState, query: Query) -> tuple[QueryAnswer, TableState]:
        """Run a statement in a state. Return the answer, and the state after it."""
        found = self._answers.get((state, query))
        if found is None:
            found = self._answers[state, query] = self._really_run(state, query)
        return found

    def _really_run(self, state: TableState, query: Query) -> tuple[QueryAnswer, TableState]:
        self.runs += 1
        self._load(state)
        cursor = self._database.create_cursor()
        try:
            cursor.execute(*query)
            rows = tuple(map(tuple, cursor.fetchall()))
        except sqlite3.Error as exc:
            failure = (type(exc).__name__, str(exc), getattr(exc, "sqlite_errorcode", None))
            return (failure, None, (), -1, None), state
        answer = (None, cursor.description, rows, cursor.rowcount, cursor.lastrowid)
        if not query.writes:
            return answer, state
        self._loaded = -1
        after = self._remember()
        self._loaded = after
        return answer, after

    def _load(self, state: TableState) -> None:
        if self._loaded != state:
            self._raw.deserialize(self._contents[state])
            self._loaded = state

    def sums(self, state: TableState) -> tuple[dict[str, int], dict[str, int]]:
        """Return the hits of each object in HitSlot, and in DailyHitSlot."""
        found = self._sums.get(state)
        if found is None:
            self._load(state)
            found = self._sums[state] = (self._sum(HitSlot), self._sum(DailyHitSlot))
        return found

    def _sum(self, table: type[models.Model]) -> dict[str, int]:
        sql = f"SELECT object_id, SUM(hits) FROM {table._meta.db_table} GROUP BY object_id"
        return {str(object_id): int(hits) for object_id, hits in self._raw.execute(sql)}


class _Database(DatabaseWrapper):
    def ensure_connection(self) -> None:
        """As in Django; pytest-django forbids it to tests without a database of their own."""
        if self.connection is None:
            self.connect()


class Transaction(NamedTuple):
    """The open transaction of an actor."""

    began_with: TableState | None = None
    """What it saw first; None until its first statement."""

    sees: TableState | None = None
    has_written: bool = False
    savepoints: tuple[tuple[str, TableState | None, bool], ...] = ()


def locked() -> QueryAnswer:
    """Return the answer to a write in a transaction that has read what is no longer true."""
    return ("OperationalError", "database is locked", sqlite3.SQLITE_BUSY), None, (), -1, None


class Session(NamedTuple):
    """What a statement of an actor did to its transaction, and to the tables."""

    answer: QueryAnswer
    transaction: Transaction | None
    committed: TableState


def run_in_transaction(
    tables: Tables, committed: TableState, open_: Transaction | None, query: Query
) -> Session:
    """Run a statement of an actor that has a transaction, or none."""
    word = query.word
    if word == "BEGIN":
        return Session(NOTHING, Transaction(), committed)
    if word in ("COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"):
        return _control(committed, open_, query)
    if open_ is None:
        answer, after = tables.run(committed, query)
        return Session(answer, None, after)
    sees = committed if open_.sees is None else open_.sees
    if query.writes and not open_.has_written and open_.began_with not in (None, committed):
        return Session(locked(), open_, committed)
    answer, after = tables.run(sees, query)
    began_with = sees if open_.began_with is None else open_.began_with
    has_written = open_.has_written or query.writes
    now = open_._replace(began_with=began_with, sees=after, has_written=has_written)
    return Session(answer, now, committed)


def _control(committed: TableState, open_: Transaction | None, query: Query) -> Session:
    words = query.sql.replace('"', "").split()
    if open_ is None:
        return Session(NOTHING, None, committed)
    if words == ["COMMIT"]:
        after = open_.sees if open_.has_written and open_.sees is not None else committed
        return Session(NOTHING, None, after)
    if words == ["ROLLBACK"]:
        return Session(NOTHING, None, committed)
    saved, name = open_.savepoints, words[-1]
    if words[0] == "SAVEPOINT":
        point = (name, open_.sees, open_.has_written)
        return Session(NOTHING, open_._replace(savepoints=(*saved, point)), committed)
    at = max(n for n, point in enumerate(saved) if point[0] == name)
    if words[0] == "RELEASE":
        return Session(NOTHING, open_._replace(savepoints=saved[:at]), committed)
    _, sees, has_written = saved[at]
    now = open_._replace(sees=sees, has_written=has_written, savepoints=saved[: at + 1])
    return Session(NOTHING, now, committed)
