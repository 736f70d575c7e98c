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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import blake2b
from typing import Any

from django_hitcount.conf import get_config
from django_hitcount.counters.imports import Days, Row, unite_days
from django_hitcount.counters.keys import CounterKey, ObjectKey
from django_hitcount.importing.rows import DAY_LEFT_OUT, Findings, SourceRow

MOST_HITS = 10**12
"""Hits of one row: millions of such rows still fit a bigint."""

FIRST_DAY = datetime.date(1970, 1, 1)
"""What is dated before it is a mistake, such as year 24."""

OBJECTS_AT_A_TIME = 500

TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE hits (
    content_type_id INTEGER, object_id TEXT, counter TEXT, day TEXT,
    hits INTEGER, visitors INTEGER, place TEXT, number INTEGER, lines INTEGER,
    PRIMARY KEY (content_type_id, object_id, counter, day)
) WITHOUT ROWID;
"""

ADD = """
INSERT INTO hits VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT DO UPDATE SET
    hits = hits + excluded.hits, visitors = visitors + excluded.visitors, lines = lines + 1
"""

FIRST_COUNTER = (0, "", "")
"""What all counters come after."""

COUNT = """
SELECT COUNT(*) FROM hits WHERE (content_type_id, object_id, counter) > (?, ?, ?)
"""

NEXT = """
SELECT content_type_id, object_id, counter, day, hits, visitors FROM hits
WHERE (content_type_id, object_id, counter) > (?, ?, ?)
ORDER BY content_type_id, object_id, counter, day LIMIT ?
"""

REST = """
SELECT content_type_id, object_id, counter, day, hits, visitors FROM hits
WHERE content_type_id = ? AND object_id = ? AND counter = ? AND day > ? ORDER BY day
"""

MOVE = """
INSERT INTO hits SELECT ?, ?, counter, day, hits, visitors, place, number, lines FROM hits
WHERE content_type_id = ? AND object_id = ?
ON CONFLICT DO UPDATE SET hits = hits + excluded.hits, visitors = visitors + excluded.visitors
"""

DAYS = """
SELECT content_type_id, counter, day, SUM(visitors) FROM hits GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""

OBJECTS = """
SELECT content_type_id, object_id, place, MIN(number), SUM(lines) FROM hits
WHERE (content_type_id, object_id) > (?, ?)
GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?
"""
"""SQLite takes the place from the row with the least number."""


class Spool:
    """The rows of a source, added up by object, counter and day. Close it after use."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(TABLES)

    def close(self) -> None:
        """Delete the temporary database."""
        self._database.close()

    def fill(
        self,
        rows: Iterable[SourceRow],
        findings: Findings,
        *,
        first_day: datetime.date,
        last_day: datetime.date,
        latest_day: datetime.date,
    ) -> None:
        """
        Take the valid rows of a source in that are of a range of days.

        Rows of days after ``latest_day`` are a problem.
        """
        counters = set(get_config().counters)
        without_visitors = {
            name for name, options in get_config().counters.items() if not options.visitors
        }

        def valid() -> Iterator[tuple[Any, ...]]:
            for place, obj, counter, day, hits, visitors in rows:
                if counter not in counters:
                    findings.add_problem(place, f"unknown counter {counter[:80]!r}")
                elif abs(hits) > MOST_HITS:
                    findings.add_problem(place, f"more than {MOST_HITS:,} hits: {hits}")
                elif not 0 <= visitors <= MOST_HITS:
                    limits = f"0 to {MOST_HITS:,}"
                    findings.add_problem(place, f"visitors not from {limits}: {visitors}")
                elif not FIRST_DAY <= day <= latest_day:
                    findings.add_problem(place, _describe_day(day, latest_day))
                elif not first_day <= day <= last_day:
                    findings.skipped[DAY_LEFT_OUT] += 1
                else:
                    counted = 0 if counter in without_visitors else visitors
                    number = findings.next_row()
                    yield *obj, counter, day.isoformat(), hits, counted, place, number

        self._database.executemany(ADD, valid())
        findings.leave_out_days(max(first_day, FIRST_DAY), min(last_day, latest_day))

    def count(self, *, after: Iterable[Any] | None = None) -> int:
        """Return how many rows there are, or how many come after a counter in lock order."""
        ((number,),) = self._database.execute(COUNT, [*(after or FIRST_COUNTER)])
        return int(number)

    def days(self) -> Days:
        """Return the days of each content type and counter, and visitors."""
        found = self._database.execute(DAYS)
        return unite_days((model, counter, [day], n) for model, counter, day, n in found)

    def rows_after(self, after: Iterable[Any] | None, size: int) -> list[Row]:
        """
        Return the next rows after a counter in lock order, and all that the last counter has.

        So a counter is never divided: it may have other days when an import is continued.
        """
        found = [*self._database.execute(NEXT, [*(after or FIRST_COUNTER), size])]
        if found:
            found += self._database.execute(REST, found[-1][:4])
        return [
            Row(CounterKey(*key), datetime.date.fromisoformat(day), hits, visitors)
            for *key, day, hits, visitors in found
        ]

    def objects(self) -> Iterator[list[tuple[ObjectKey, str, int, int]]]:
        """Yield some objects at a time, each with its first row and how many rows it has."""
        after: ObjectKey = (0, "")
        while found := [*self._database.execute(OBJECTS, [*after, OBJECTS_AT_A_TIME])]:
            after = found[-1][:2]
            yield [((model, pk), *row) for model, pk, *row in found]

    def move(self, objects: Mapping[ObjectKey, ObjectKey]) -> None:
        """Add the rows of objects to those of others."""
        for obj, to in objects.items():
            self._database.execute(MOVE, [*to, *obj])
        self.drop(objects)

    def drop(self, objects: Iterable[ObjectKey]) -> None:
        """Drop the rows of objects."""
        statement = "DELETE FROM hits WHERE content_type_id = ? AND object_id = ?"
        self._database.executemany(statement, objects)


def _describe_day(day: datetime.date, latest_day: datetime.date) -> str:
    if day > latest_day:
        return f"day {day} is after {latest_day}, the last day that can be imported"
    return f"day {day} is before {FIRST_DAY}"


class Seen:
    """
    The visitors and addresses of a log, to find repeats.

    As keyed hashes, under a key that is in no file and in no database, and gone after the import.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
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
        with closing(self._database.execute(statement, [self._hash(name), *values])) as cursor:
            return cursor.rowcount == 1

    def _hash(self, name: tuple[object, ...]) -> bytes:
        text = "\0".join(map(str, name)).encode(errors="backslashreplace")
        return blake2b(text, key=self._secret, digest_size=16).digest()
