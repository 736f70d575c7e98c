"""
A temporary database, in which the rows of a source are added up and sorted before any is written.

So a source may be larger than memory, in any order, and with several rows of a day. Whatever is
wrong with it is found before anything is written. It is SQLite's own temporary file, which nobody
else can open.
"""

from __future__ import annotations

import datetime
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from django_hitcount.counters.imports import Days, Row, unite_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.importing.rows import SourceRow

TABLE = """
CREATE TABLE hits (
    content_type_id INTEGER, object_id TEXT, counter TEXT, day TEXT,
    hits INTEGER, visitors INTEGER,
    PRIMARY KEY (content_type_id, object_id, counter, day)
) WITHOUT ROWID
"""

ADD = """
INSERT INTO hits VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET hits = hits + excluded.hits, visitors = visitors + excluded.visitors
"""

FIRST_COUNTER = (0, "", "")
"""What all counters come after."""

COUNT = """
SELECT COUNT(*) FROM hits WHERE (content_type_id, object_id, counter) > (?, ?, ?)
"""

AFTER = """
SELECT content_type_id, object_id, counter, day, hits, visitors FROM hits
WHERE (content_type_id, object_id, counter) > (?, ?, ?)
ORDER BY content_type_id, object_id, counter, day
"""

DAYS = """
SELECT content_type_id, counter, day, SUM(visitors) FROM hits GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

OBJECTS = "SELECT COUNT(*) FROM (SELECT DISTINCT content_type_id, object_id FROM hits)"


class Spool:
    """The rows of a source, added up by object, counter and day. Close it after use."""

    def __init__(self) -> None:
        # All is one transaction that never commits, so SQLite keeps no journal of new pages.
        self._database = sqlite3.connect("")
        self._database.execute(TABLE)

    def close(self) -> None:
        """Delete the temporary database."""
        self._database.close()

    def fill(self, rows: Iterable[SourceRow]) -> None:
        """Add rows of a source."""
        values = (
            (*obj, counter, day.isoformat(), hits, visitors)
            for _, obj, counter, day, hits, visitors, _ in rows
        )
        self._database.executemany(ADD, values)

    def count(self, after: Iterable[Any] | None) -> int:
        """Return how many rows come after a counter in lock order; None is before all counters."""
        ((number,),) = self._database.execute(COUNT, [*(after or FIRST_COUNTER)])
        return int(number)

    def days(self) -> Days:
        """Return the days of each content type and counter, and visitors."""
        found = self._database.execute(DAYS)
        return unite_days((model, counter, [day], n) for model, counter, day, n in found)

    def pieces(self, after: Iterable[Any] | None, size: int) -> Iterator[list[Row]]:
        """
        Yield the rows after a counter in lock order, ``size`` or some more at a time.

        A counter is never divided: it may have other days when an import is continued.
        """
        piece: list[Row] = []
        for *key, day, hits, visitors in self._database.execute(AFTER, [*(after or FIRST_COUNTER)]):
            row = Row(CounterKey(*key), datetime.date.fromisoformat(day), hits, visitors)
            if len(piece) >= size and row.key != piece[-1].key:
                yield piece
                piece = []
            piece.append(row)
        if piece:
            yield piece

    def count_objects(self) -> int:
        """Return how many objects have rows."""
        ((number,),) = self._database.execute(OBJECTS)
        return int(number)


class Seen:
    """
    The visitors and addresses of a log, to find repeats.

    As keyed hashes, under a key that is in no file and in no database, and gone after the import.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._database = sqlite3.connect("")
        self._database.execute(
            "CREATE TABLE seen (name BLOB PRIMARY KEY, value INTEGER) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Delete the temporary database."""
        self._database.close()

    def is_new(self, *name: object) -> bool:
        """Return whether this is the first time that ``name`` is asked for."""
        return self._write("INSERT INTO seen VALUES (?, 0) ON CONFLICT DO NOTHING", name)

    def is_due(self, moment: int, seconds: int, *name: object) -> bool:
        """Return whether ``seconds`` have passed since the last time that this was true."""
        upsert = (
            "INSERT INTO seen VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value "
            "WHERE excluded.value >= value + ?"
        )
        return self._write(upsert, name, moment, seconds)

    def count(self, *name: object) -> int:
        """Return how often add() was called."""
        select = "SELECT value FROM seen WHERE name = ?"
        found = self._database.execute(select, [self._hash(name)]).fetchone()
        return int(found[0]) if found else 0

    def add(self, *name: object) -> None:
        """Count ``name`` once more."""
        upsert = "INSERT INTO seen VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1"
        self._write(upsert, name)

    def _write(self, statement: str, name: tuple[object, ...], *values: int) -> bool:
        return self._database.execute(statement, [self._hash(name), *values]).rowcount == 1

    def _hash(self, name: tuple[object, ...]) -> bytes:
        text = "\0".join(map(str, name)).encode(errors="backslashreplace")
        return blake2b(text, key=self._secret, digest_size=16).digest()
