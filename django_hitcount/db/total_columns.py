"""
Columns of a project's own models that hold the total of a counter: HitCountField.

StaleTotal names the totals that have changed since their columns were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import models

from django_hitcount import conf
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters import primary_keys
from django_hitcount.counters.keys import CounterKey, InvalidKey, check_counter
from django_hitcount.counters.primary_keys import counted_model, key_type
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import StaleTotal, hits_alias
from django_hitcount.exceptions import InvalidArgument

if TYPE_CHECKING:
    BigIntegerField = models.BigIntegerField[int, int]
else:
    BigIntegerField = models.BigIntegerField


class HitCountField(BigIntegerField):
    """
    A column with the total of a counter, for a model with HitCountMixin or a registered one.

    On other models, nothing writes it.

    ``compact_hits`` keeps it up to date, and the command ``fill_hit_counts`` fills it the first
    time. So it is as old as the last run of ``compact_hits``, and lacks what waited in the buffer
    then. It has an index, unless you pass ``db_index=False``.

    Saving an object never changes the column: a new row begins with 0, and an existing one keeps
    its value. A fixture is loaded with the value that it has.
    """

    non_db_attrs = (*models.BigIntegerField.non_db_attrs, "counter")

    def __init__(self, *args: Any, counter: str = conf.DEFAULT_COUNTER, **kwargs: Any) -> None:
        self.counter = counter
        kwargs = {"db_index": True, **kwargs, "default": 0, "editable": False}
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["default"], kwargs["editable"]
        if not kwargs.pop("db_index", False):
            kwargs["db_index"] = False
        if self.counter != conf.DEFAULT_COUNTER:
            kwargs["counter"] = self.counter
        return name, path.replace(__name__, "django_hitcount.fields"), args, kwargs

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return what leaves the column as it is: the value in memory may be old."""
        if not add:
            return models.F(self.attname)
        setattr(model_instance, self.attname, 0)
        return 0

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        return [*super().check(**kwargs), *self._find_errors()]

    def _find_errors(self) -> Iterator[CheckMessage]:
        if not conf.find_setting_errors():
            try:
                check_counter(self.counter)
            except InvalidArgument as exc:
                hint = "Pass the name of a counter to HitCountField, or add it to the setting."
                yield Error(str(exc), hint=hint, obj=self, id="django_hitcount.E007")
        try:
            key_type(self.model)
        except InvalidKey as exc:
            yield Error(str(exc), hint="Remove the field.", obj=self, id="django_hitcount.E005")
            return
        counted = counted_model(self.model)
        if counted is not self.model:
            yield Error(
                f"{self.model._meta.label} has a HitCountField, but its hits are counted as those "
                f"of {counted._meta.label}.",
                hint=f"Move the field to {counted._meta.label}.",
                obj=self,
                id="django_hitcount.E008",
            )


def total_columns() -> Mapping[type[models.Model], Sequence[HitCountField]]:
    """
    Return the models that have such columns, with these.

    Leaves out models that were not registered, see deletion.register(): a history app copies the
    columns of a model into one of its own, whose objects nobody counts.
    """
    found = _find_columns()
    return {model: found[model] for model in found if model in primary_keys.registered}


@cached_for_settings("INSTALLED_APPS")
def _find_columns() -> Mapping[type[models.Model], Sequence[HitCountField]]:
    found = {
        model: [f for f in model._meta.local_concrete_fields if isinstance(f, HitCountField)]
        for model in apps.get_models()
    }
    return {model: fields for model, fields in found.items() if fields}


def mark_stale(keys: Iterable[CounterKey]) -> None:
    """
    Mark the totals of those of ``keys`` that have columns as stale.

    Call it in the transaction that folds or deletes their rows. Costs a statement,
    and nothing if there are no columns. Costs one more query per model at the first call of a
    process.
    """
    columns = {
        (content_type_id_of(model), field.counter)
        for model, fields in total_columns().items()
        for field in fields
    }
    if columns:
        stale = [
            StaleTotal(**key._asdict())
            for key in dict.fromkeys(keys)
            if (key.content_type_id, key.counter) in columns
        ]
        StaleTotal.objects.using(hits_alias()).bulk_create(stale)
