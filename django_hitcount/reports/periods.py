"""The days that a report is about, and those before them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.dateparse import parse_date
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _

from django_hitcount.counters.days import LONGEST_RANGE_DAYS, day_of, days_until
from django_hitcount.exceptions import InvalidDay

DAYS_BY_NAME = {"today": 1, "7": 7, "30": 30, "90": 90, "365": 365}
"""How many days the named periods have, today included."""

DEFAULT_PERIOD = "30"

LONGEST_PERIOD_DAYS = LONGEST_RANGE_DAYS // 2
"""A report reads the period before as well, in one range of days."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """Calendar days in TIME_ZONE, the last one included."""

    first_day: datetime.date
    last_day: datetime.date
    name: str = ""
    """The key in DAYS_BY_NAME; empty if somebody chose the days."""

    @property
    def days(self) -> int:
        return (self.last_day - self.first_day).days + 1

    @property
    def before(self) -> Period:
        """As many days, up to the day before the first one."""
        day_before = self.first_day - datetime.timedelta(days=1)
        first_day, last_day = days_until(day_before, self.days)
        return Period(first_day=first_day, last_day=last_day)

    @property
    def parameters(self) -> dict[str, str]:
        """What read_period() makes this period of."""
        if self.name:
            return {"period": self.name}
        return {"first": self.first_day.isoformat(), "last": self.last_day.isoformat()}


def named_period(name: str) -> Period:
    """Return the days of a name in DAYS_BY_NAME, up to today."""
    first_day, last_day = days_until(day_of(), DAYS_BY_NAME[name])
    return Period(name=name, first_day=first_day, last_day=last_day)


def period_up_to(day: datetime.date) -> Period | None:
    """Return as many days as the default period has, up to a day; None for days of the year 1."""
    days = DAYS_BY_NAME[DEFAULT_PERIOD]
    if day.toordinal() <= 2 * days:
        return None
    first_day, last_day = days_until(day, days)
    return Period(first_day=first_day, last_day=last_day)


def read_period(parameters: Mapping[str, str]) -> Period:
    """
    Return the period that the parameters of an address name, 30 days if none.

    ``first`` and ``last`` are days such as 2026-11-22, and win over ``period``. Without ``last``,
    the period ends today, and so it does if ``last`` is in the future.

    Raises InvalidDay with a message in the active language.
    """
    if parameters.get("first") or parameters.get("last"):
        return _read_chosen_days(parameters)
    name = parameters.get("period") or DEFAULT_PERIOD
    if name not in DAYS_BY_NAME:
        known = ", ".join(DAYS_BY_NAME)
        raise InvalidDay(
            _("Invalid period: “%(name)s”. Use one of %(known)s.") % {"name": name, "known": known}
        )
    return named_period(name)


def _read_chosen_days(parameters: Mapping[str, str]) -> Period:
    if not parameters.get("first"):
        raise InvalidDay(_("Give the first day (From), too."))
    first_day = _parse_day(parameters["first"])
    last_day = min(read_last_day(parameters), day_of())
    period = Period(first_day=first_day, last_day=last_day)
    if problem := _find_problem(period):
        most = number_format(LONGEST_PERIOD_DAYS, force_grouping=True)
        named = {"first": date_format(first_day), "last": date_format(last_day), "most": most}
        raise InvalidDay(problem % named)
    return period


def read_last_day(parameters: Mapping[str, str]) -> datetime.date:
    """Return the day of ``last``, today without one. Raises InvalidDay."""
    return _parse_day(parameters["last"]) if parameters.get("last") else day_of()


def _find_problem(period: Period) -> str:
    """Return what is wrong with chosen days; empty if nothing is."""
    if period.first_day > day_of():
        return _("The first day, %(first)s, is in the future.")
    if period.days < 1:
        return _("The first day, %(first)s, is later than the last day, %(last)s.")
    if period.days > LONGEST_PERIOD_DAYS:
        return _("From %(first)s to %(last)s is too long. Choose at most %(most)s days.")
    if period.first_day.toordinal() <= period.days:  # The period before would begin before year 1.
        return _("Invalid day: %(first)s. Give a later day.")
    return ""


def _parse_day(text: str) -> datetime.date:
    try:
        day = parse_date(text)
    except ValueError:  # It looks like a day but is none, such as February 30.
        day = None
    if day is None:
        raise InvalidDay(
            _("Invalid day: “%(day)s”. Give both days as year-month-day, such as 2026-11-22.")
            % {"day": text}
        )
    return day
