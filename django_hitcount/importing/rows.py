"""What a source of hits yields, and what is wrong with it."""

from __future__ import annotations

import datetime
from bisect import insort
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from django.apps import apps
from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.keys import InvalidKey, ObjectKey
from django_hitcount.counters.primary_keys import check_object_id, key_type
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.exceptions import InvalidArgument

SHOWN_PROBLEMS = 20
"""How many problems are kept to be shown. All are counted."""

PROBLEM_LENGTH = 400
"""Characters that are shown of a problem. A file may have very long cells."""

DAY_LEFT_OUT = "a day that was left out"

KEY_BITS = 64
"""Bits of the largest integer key, with its sign. SQLite raises OverflowError for larger ones."""


def with_counter(name: str, counter: str) -> str:
    """Return the name of a source, with that of the counter unless it is the default."""
    return name if counter == DEFAULT_COUNTER else f"{name} {counter}"


class SourceRow(NamedTuple):
    """Hits of an object on one day. A source may have several rows of the same day."""

    place: str
    """Where the row is, for messages, such as ``hits.csv, line 12``."""

    obj: ObjectKey
    counter: str
    day: datetime.date
    hits: int
    visitors: int = 0


class Findings:
    """What is found in a source beside hits."""

    def __init__(self) -> None:
        self.problems = 0
        """How many rows are left out because something is wrong with them."""

        self._rows_seen = 0
        self._first: list[tuple[int, str]] = []

        self.skipped: Counter[str] = Counter()
        """How many rows are left out because they are no hits, by reason."""

        self.refused: Counter[tuple[str, str, str]] = Counter()
        """Refused hits by day, counter and name of the refusal."""

    @property
    def shown(self) -> list[str]:
        """What is wrong with the first of them, and where, in the order of the source."""
        return [text for _, text in self._first]

    def next_row(self) -> int:
        """Return the number of a row, in the order of the source."""
        self._rows_seen += 1
        return self._rows_seen

    def add_problem(
        self, place: str, problem: str, *, rows: int = 1, first_row: int | None = None
    ) -> None:
        """
        Count rows with a problem, and keep the message if it is one of the first.

        Without the number of its ``first_row``, it is the row that follows all numbered ones.
        """
        self.problems += rows
        number = first_row or self.next_row()
        if len(self._first) < SHOWN_PROBLEMS or number < self._first[-1][0]:
            insort(self._first, (number, _printable(f"{place}: {problem}")))
            del self._first[SHOWN_PROBLEMS:]

    def leave_out_days(self, first_day: datetime.date, last_day: datetime.date) -> None:
        """Drop refused hits of days before or after these."""
        for day, counter, refusal in [*self.refused]:
            if not first_day.isoformat() <= day <= last_day.isoformat():
                self.skipped[DAY_LEFT_OUT] += self.refused.pop((day, counter, refusal))


def _printable(text: str) -> str:
    """Return a text on one line, without what a terminal would obey or could not print."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:PROBLEM_LENGTH])
    return shown + ("..." if len(text) > PROBLEM_LENGTH else "")


class Source(Protocol):
    """Where hits are imported from."""

    @property
    def name(self) -> str:
        """What the import is called, if nothing else is said."""

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """
        Yield the hits. Add what is wrong with a row to ``findings``, and go on.

        Raises InvalidArgument if the whole source cannot be read.
        """


def read_object_id(model: type[Model], text: object) -> str:
    """Return the primary key that a source has as ``text``. Raises ValueError or InvalidKey."""
    key = key_type(model).parse(text)
    if isinstance(key, int) and key.bit_length() >= KEY_BITS:
        raise ValueError(f"has more than {KEY_BITS} bits")
    return check_object_id(str(key))


class ObjectNames:
    """Reads objects as they are written in files: ``app.model:pk``."""

    def __init__(self) -> None:
        self._types: dict[str, tuple[int, type[Model]]] = {}

    def find(self, text: str) -> ObjectKey:
        """Return the object that ``text`` names, which may not exist. Raises InvalidArgument."""
        label, _, pk = text.lstrip().partition(":")
        if label not in self._types:
            self._types[label] = self._find_type(label, text)
        content_type_id, model = self._types[label]
        try:
            return content_type_id, read_object_id(model, pk)
        except (ValueError, InvalidKey):
            raise InvalidArgument(f"invalid primary key {pk[:80]!r} of {label}") from None

    def _find_type(self, label: str, text: str) -> tuple[int, type[Model]]:
        try:
            model = apps.get_model(label)
        except (LookupError, ValueError):
            raise InvalidArgument(f"unknown object {text[:80]!r}, not app.model:pk") from None
        return content_type_id_of(model), model
