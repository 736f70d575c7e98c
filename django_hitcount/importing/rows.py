"""What a source of hits yields, and what is wrong with it."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from django.apps import apps
from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.keys import InvalidKey, ObjectKey, RefusedKey
from django_hitcount.counters.primary_keys import check_object_id, key_type
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.exceptions import InvalidArgument

SHOWN_PROBLEMS = 20
"""How many problems are kept to be shown. All are counted."""

PROBLEM_LENGTH = 400
"""Characters that are shown of a problem. A file may have very long cells."""

DAY_LEFT_OUT = "a day that was left out"

MOST_HITS = 10**12
"""Hits of one row: millions of such rows still fit a bigint."""

FIRST_DAY = datetime.date(1970, 1, 1)
"""What is dated before it is a mistake, such as year 24."""

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
    refusal: str | None = None
    """Why a hit is refused that ``hits`` leaves out."""


class Findings:
    """What is found in a source beside hits."""

    def __init__(self) -> None:
        self.problems = 0
        """How many rows are left out because something is wrong with them."""

        self.shown: list[str] = []
        """What is wrong with the first of them, and where."""

        self._shown_objects: set[ObjectKey] = set()

        self.skipped: Counter[str] = Counter()
        """How many rows are left out because they are no hits, by reason."""

        self.refused: Counter[RefusedKey] = Counter()
        """Refused hits."""

    def add_problem(self, place: str, problem: str, *, unknown: ObjectKey | None = None) -> None:
        """
        Count a row with a problem, and keep the message if it is one of the first.

        Of the rows of an ``unknown`` object, keeps the message of the first one.
        """
        self.problems += 1
        if len(self.shown) < SHOWN_PROBLEMS and unknown not in self._shown_objects:
            self.shown.append(_printable(f"{place}: {problem}"))
            if unknown:
                self._shown_objects.add(unknown)


def _printable(text: str) -> str:
    """Return a text on one line, without what a terminal would obey or could not print."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:PROBLEM_LENGTH])
    return shown + ("..." if len(text) > PROBLEM_LENGTH else "")


def keep_valid(
    rows: Iterable[SourceRow],
    findings: Findings,
    *,
    first_day: datetime.date,
    last_day: datetime.date,
    latest_day: datetime.date,
) -> Iterator[SourceRow]:
    """
    Yield the valid rows of a source that are in a range of days. Count those of refused hits.

    Rows of days after ``latest_day`` are a problem.
    """
    counters = get_config().counters
    for row in rows:
        if row.counter not in counters:
            findings.add_problem(row.place, f"unknown counter {row.counter[:80]!r}")
        elif abs(row.hits) > MOST_HITS:
            findings.add_problem(row.place, f"more than {MOST_HITS:,} hits: {row.hits}")
        elif not 0 <= row.visitors <= MOST_HITS:
            limits = f"0 to {MOST_HITS:,}"
            findings.add_problem(row.place, f"visitors not from {limits}: {row.visitors}")
        elif (problem := _find_problem_of_day(row.day, latest_day)) and not row.refusal:
            findings.add_problem(row.place, problem)
        elif problem or not first_day <= row.day <= last_day:
            findings.skipped[DAY_LEFT_OUT] += 1  # Without a refused hit, no hit is lost.
        else:
            if row.refusal:
                findings.refused[RefusedKey(row.day, row.counter, row.refusal)] += 1
            if row.visitors or not row.refusal:
                yield row if counters[row.counter].visitors else row._replace(visitors=0)


def _find_problem_of_day(day: datetime.date, latest_day: datetime.date) -> str | None:
    if day > latest_day:
        return f"day {day} is after {latest_day}, the last day that can be imported"
    return f"day {day} is before {FIRST_DAY}" if day < FIRST_DAY else None


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


def find_key(text: str) -> ObjectKey:
    """Return the object that ``app.model:pk`` names; it may not exist. Raises InvalidArgument."""
    label, _, pk = text.lstrip().partition(":")
    try:
        model: type[Model] = apps.get_model(label)
    except (LookupError, ValueError):
        raise InvalidArgument(f"unknown object {text[:80]!r}, not app.model:pk") from None
    try:
        key = key_type(model).parse(pk)
        if isinstance(key, int) and key.bit_length() >= KEY_BITS:
            raise ValueError(f"more than {KEY_BITS} bits")
        return content_type_id_of(model), check_object_id(str(key))
    except (ValueError, InvalidKey):
        raise InvalidArgument(f"invalid primary key {pk[:80]!r} of {label}") from None
