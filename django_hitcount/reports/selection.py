"""What a report is about: days, a counter, and one model or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, OuterRef, Subquery
from django.utils.translation import gettext as _

from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.db.tables import HitSlot
from django_hitcount.exceptions import InvalidDay
from django_hitcount.reports.periods import DEFAULT_PERIOD, Period, named_period, read_period


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
    def parameters(self) -> dict[str, str]:
        """The parameters of the address of this report, except those that say the default."""
        model = {"model": self.model.label} if self.model else {}
        counter = {"counter": self.counter} if self.counter != DEFAULT_COUNTER else {}
        return {**self.period.parameters, **counter, **model}


def find_counted_models(*, using: str) -> list[CountedModel]:
    """
    Return the models whose objects have hits in the tables, by name.

    Costs a query, which looks for one row of each model.
    """
    # Not EXISTS: MariaDB would read a whole index for it.
    one = HitSlot.objects.filter(content_type=OuterRef("pk")).values("content_type")[:1]
    types = ContentType.objects.using(using).annotate(counted=Subquery(one))
    found = (
        CountedModel(content_type_id=content_type.pk, model=model)
        for content_type in types.filter(counted__isnull=False)
        if (model := content_type.model_class())  # None if the site has no such model any more.
    )
    return sorted(found, key=lambda counted: (counted.name, counted.label))


def read_selection(parameters: Mapping[str, str], models: Sequence[CountedModel]) -> Selection:
    """
    Return what the parameters of an address select among ``models``.

    An invalid parameter becomes a problem in the active language, and the default is selected.
    """
    problems: list[str] = []
    return Selection(
        period=_read_period(parameters, problems),
        counter=_read_counter(parameters, problems),
        model=_read_model(parameters, models, problems),
        problems=problems,
    )


def _read_period(parameters: Mapping[str, str], problems: list[str]) -> Period:
    try:
        return read_period(parameters)
    except InvalidDay as exc:
        default = named_period(DEFAULT_PERIOD)
        problems.append(_("%(problem)s These are the last 30 days.") % {"problem": exc})
        return default


def _read_counter(parameters: Mapping[str, str], problems: list[str]) -> str:
    counter = parameters.get("counter") or DEFAULT_COUNTER
    if counter in get_config().counters:
        return counter
    problems.append(
        _("Unknown counter: “%(counter)s”. These are the hits of “%(default)s”.")
        % {"counter": counter, "default": DEFAULT_COUNTER}
    )
    return DEFAULT_COUNTER


def _read_model(
    parameters: Mapping[str, str], models: Sequence[CountedModel], problems: list[str]
) -> CountedModel | None:
    label = parameters.get("model", "")
    found = next((counted for counted in models if counted.label == label.lower()), None)
    if label and not found:
        problems.append(
            _("No hits of “%(model)s” are counted. These are the hits of all models.")
            % {"model": label}
        )
    return found
