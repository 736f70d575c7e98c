"""What a report is about: days, a counter, and one model or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Model
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.exceptions import InvalidDay
from django_hitcount.reports.periods import (
    DEFAULT_PERIOD,
    Period,
    named_period,
    read_last_day,
    read_period,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedModel:
    """A model whose objects have hits."""

    content_type_id: int
    model: type[Model]

    @property
    def label(self) -> str:
        """Its name in an address, as "blog.article"."""
        return self.model._meta.label_lower

    @property
    def name(self) -> str:
        """Its name for people: several objects."""
        return str(self.model._meta.verbose_name_plural)


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What a report is about, and what was wrong with the parameters of its address."""

    period: Period
    counter: str = DEFAULT_COUNTER
    model: CountedModel | None = None
    """None: all models."""

    problems: Sequence[str] = ()

    @property
    def counts_visitors(self) -> bool:
        """Whether the visitors of the counter are counted."""
        return get_config().options_of(self.counter).visitors

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address of this report, except those that say the default."""
        model = {"model": self.model.label} if self.model else {}
        counter = {"counter": self.counter} if self.counter != DEFAULT_COUNTER else {}
        return {**self.period.parameters, **counter, **model}


def read_selection(parameters: Mapping[str, str], *, with_today: bool = False) -> Selection:
    """
    Return what the parameters of an address select, except the model.

    An invalid parameter becomes a problem in the active language, and the default is selected. For
    ``with_today``, see named_period().
    """
    problems: list[str] = []
    return Selection(
        period=_read_period(parameters, problems, with_today=with_today),
        counter=_read_counter(parameters, problems),
        problems=problems,
    )


def select_model(selection: Selection, label: str, models: Sequence[CountedModel]) -> Selection:
    """
    Add a model to a selection: the one of ``models`` with this label, or all without a label.

    An unknown label becomes a problem, as in read_selection().
    """
    found = next((counted for counted in models if counted.label == label.lower()), None)
    if not label or found:
        return replace(selection, model=found)
    problem = _("No hits of “%(model)s” are counted. These are the hits of all models.")
    return replace(selection, problems=[*selection.problems, problem % {"model": label}])


def _read_period(parameters: Mapping[str, str], problems: list[str], *, with_today: bool) -> Period:
    try:
        period = read_period(parameters, with_today=with_today)
        last_day = read_last_day(parameters)
    except InvalidDay as exc:
        problems.append(_("%(problem)s These are the last 30 days.") % {"problem": exc})
        return named_period(DEFAULT_PERIOD, with_today=with_today)
    if last_day and period.last_day < last_day:
        problem = _("%(day)s is not over yet. These are the days up to %(last)s.")
        named = {"day": date_format(last_day), "last": date_format(period.last_day)}
        problems.append(problem % named)
    return period


def _read_counter(parameters: Mapping[str, str], problems: list[str]) -> str:
    counter = parameters.get("counter") or DEFAULT_COUNTER
    if counter in get_config().counters:
        return counter
    problems.append(
        _("Unknown counter: “%(counter)s”. These are the hits of “%(default)s”.")
        % {"counter": counter, "default": DEFAULT_COUNTER}
    )
    return DEFAULT_COUNTER
