"""What a report is about: days, those before them, a counter, and one model or all."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Model
from django.utils.translation import gettext_lazy

from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.days import LONGEST_RANGE_DAYS, day_of, days_until, list_days

TODAY, THIS_YEAR = "today", "this-year"

PERIODS = {
    TODAY: gettext_lazy("Today"),
    "yesterday": gettext_lazy("Yesterday"),
    "7": gettext_lazy("7 days"),
    "30": gettext_lazy("30 days"),
    "90": gettext_lazy("90 days"),
    "365": gettext_lazy("365 days"),
    "last-week": gettext_lazy("Last week"),
    "last-month": gettext_lazy("Last month"),
    THIS_YEAR: gettext_lazy("This year"),
}
"""What named periods are called, by their names. A number is one of days."""

DEFAULT_PERIOD = "30"

LONGEST_PERIOD_DAYS = LONGEST_RANGE_DAYS // 2
"""A report reads the period before as well, in one range of days."""

MOST_VISITOR_DAYS = 92
"""Days whose visitors a ranking shows. Redis is asked for each day of each object."""

ONE_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """Calendar days in TIME_ZONE, the last one included."""

    first_day: datetime.date
    last_day: datetime.date
    today: datetime.date
    """The day on which the report is made."""

    name: str = ""
    """One of PERIODS; empty if somebody chose the days."""

    @property
    def ends(self) -> tuple[datetime.date, datetime.date]:
        return self.first_day, self.last_day

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1

    @property
    def is_today(self) -> bool:
        return self.first_day == self.today

    @property
    def before(self) -> Period | None:
        """
        As many days, up to the day before the first one. This year is compared with last year, from
        January 1. None for today: it is not over, so there is nothing to compare.
        """
        if self.is_today:
            return None
        first_day = self.first_day - self.days * ONE_DAY
        if self.name == THIS_YEAR:
            first_day = (self.first_day - ONE_DAY).replace(month=1, day=1)
        last_day = first_day + (self.days - 1) * ONE_DAY
        return Period(first_day=first_day, last_day=last_day, today=self.today)

    @property
    def read_days(self) -> tuple[datetime.date, datetime.date]:
        """Return the days to read: with those before, and today unless that is too far away."""
        first_day = (self.before or self).first_day
        is_near = (self.today - first_day).days < LONGEST_RANGE_DAYS
        return first_day, self.today if is_near else self.last_day

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of an address that choose this period."""
        if self.name:
            return {"period": self.name}
        return {"first": self.first_day.isoformat(), "last": self.last_day.isoformat()}

    def list_days(self) -> list[datetime.date]:
        return list_days(*self.ends)


def named_period(name: str, *, with_today: bool = False) -> Period:
    """
    Return the days of one of PERIODS.

    They are over, or are today alone, because a running day beside a full one looks like a slump.
    ``with_today`` is for days that are compared with none: those up to now end with today.

    Weeks begin on Monday, as those of hits_by_week(), whatever the language. On January 1, no day
    of this year is over: it is today.
    """
    today = day_of()
    yesterday, end_of_month = today - ONE_DAY, today.replace(day=1) - ONE_DAY
    newest = today if with_today else yesterday
    end_of_week = today - (today.weekday() + 1) * ONE_DAY
    first_day, last_day = {
        TODAY: (today, today),
        "yesterday": (yesterday, yesterday),
        "last-week": days_until(end_of_week, 7),
        "last-month": (end_of_month.replace(day=1), end_of_month),
        THIS_YEAR: (today.replace(month=1, day=1), newest),
    }.get(name) or days_until(newest, int(name))
    return Period(name=name, first_day=first_day, last_day=max(first_day, last_day), today=today)


Models = Mapping[int, type[Model]]
"""Models by the primary keys of their content types."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What a report is about."""

    period: Period
    counter: str = DEFAULT_COUNTER
    models: Models = field(default_factory=dict)
    """The models that can be chosen."""

    model: type[Model] | None = None
    """The chosen one; None: all models."""

    overviews: Sequence[type[Model]] = ()
    """What "all models" leave out: see leave_out_overviews()."""

    @property
    def content_type_ids(self) -> list[int]:
        """The content types of what is chosen."""
        chosen = [self.model] if self.model else {*self.models.values()} - {*self.overviews}
        return [pk for pk, model in self.models.items() if model in chosen]

    @property
    def counts_visitors(self) -> bool:
        """Whether the visitors of the counter are counted."""
        return get_config().options_of(self.counter).visitors

    @property
    def shows_visitors(self) -> bool:
        """Whether a ranking has a column of visitors."""
        return self.counts_visitors and self.period.days <= MOST_VISITOR_DAYS

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address of this report, except those that say the default."""
        model = {"model": self.model._meta.label_lower} if self.model else {}
        counter = {"counter": self.counter} if self.counter != DEFAULT_COUNTER else {}
        return {**self.period.parameters, **counter, **model}
