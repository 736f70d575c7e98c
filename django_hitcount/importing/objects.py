"""Objects that a project has at hand, with their hits."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from django.db.models import Model

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.rows import Findings, SourceRow


@dataclass(frozen=True)
class Objects:
    """
    Tuples of an object, a day and a number of hits, in any order. The import needs an id.

    An object may be on the same day several times.
    """

    hits: Iterable[tuple[Model, datetime.date, int]]
    counter: str = DEFAULT_COUNTER

    name: ClassVar[str] = ""

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """Yield the hits."""
        for number, (obj, day, hits) in enumerate(self.hits, 1):
            place = f"row {number}"
            try:
                key = counter_key(obj, counter=self.counter)
                if type(hits) is not int:
                    raise InvalidArgument(f"invalid hits {hits!r}, not a whole number")
                if day is None:
                    raise InvalidArgument("the day is missing")
                yield SourceRow(place, key[:2], self.counter, day_of(day), hits)
            except InvalidArgument as exc:
                findings.add_problem(place, str(exc))
