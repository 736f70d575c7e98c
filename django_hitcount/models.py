"""The models, and what models of projects are made of: the mixin and querysets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Self

from django.core.checks import CheckMessage, Error
from django.db import models
from django.db.models.fields.reverse_related import ForeignObjectRel
from django.db.models.signals import class_prepared, post_delete
from django.utils.translation import gettext_lazy as _

from django_hitcount import deletion, known_rows, reading, recording, series
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.numbers import HitsOfObject, Number, forget_numbers, numbers_of
from django_hitcount.counters.primary_keys import named_models
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.expressions import HitCountSum
from django_hitcount.db.tables import (
    Correction,
    DailyHitSlot,
    HitSlot,
)
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.numbers import read_numbers
from django_hitcount.querysets import (
    HitCountManager,
    HitCountQuerySet,
    with_hits,
    with_visitors,
)
from django_hitcount.twins import async_method

COUNTER_NAME_MAX_LENGTH = 100

_is_counter_name = re.compile(r"[a-z0-9][a-z0-9_.:/-]*").fullmatch

__all__ = [
    "Correction",
    "Counter",
    "DailyHitSlot",
    "HitCountManager",
    "HitCountMixin",
    "HitCountQuerySet",
    "HitCountSum",
    "HitSlot",
    "with_hits",
    "with_visitors",
]


class HitCountMixin(models.Model):
    """
    A model whose objects record their hits, and read their totals and visitors::

        class Article(HitCountMixin, models.Model): ...

        article.record_hit(request)
        article.hits

    It adds no field, so it needs no migration. Deleting an object deletes its counts. If the model
    has a method ``hit_count_object()``, the hits are those of the object that it returns.

    These functions are its methods, without their first argument: record_hit(), get_hits(),
    get_visitors(), hits_by_day(), hits_by_week(), hits_by_month(), visitors_by_day(), and their
    async twins.

    If neither the model nor a base declares a manager, ``objects`` is a HitCountManager, so
    that ``Article.objects.with_hits()`` works. Declared managers stay as they are: build yours from
    HitCountQuerySet or HitCountManager.
    """

    class Meta:
        abstract = True

    @HitsOfObject
    def hits(self) -> int:
        """
        The exact hits of the counter "views", of all time.

        Reading it never writes. Costs what get_hits() costs, and nothing for ten seconds after
        with_hits(), prefetch_hits() or record_hit(), which leave the number on the object.

        On an object that comes from popular(), it is the number of that ranking, until record_hit()
        or refresh_from_db().
        """
        number = Number(counter_key(self, counter=DEFAULT_COUNTER))
        total: int | None = numbers_of(self).recall(number)
        return read_numbers([number])[number] if total is None else total

    @classmethod
    def check(cls, **kwargs: Any) -> list[CheckMessage]:
        """See Model.check(). E010: a field or a relation hides an attribute of the mixin."""
        # A proxy has the fields of its concrete model.
        fields = [] if cls._meta.proxy else cls._meta.get_fields(include_parents=False)
        named = {
            field.get_accessor_name() if isinstance(field, ForeignObjectRel) else field.name: field
            for field in fields
        }
        return [
            *super().check(**kwargs),
            *(
                Error(
                    f"The field {name!r} of {cls._meta.label} hides HitCountMixin.{name}.",
                    hint="Give the field, or the relation (related_name), another name, such as "
                    "'views'.",
                    obj=named[name],
                    id="django_hitcount.E010",
                )
                for name in vars(HitCountMixin)
                if name in named
            ),
        ]

    def refresh_from_db(
        self,
        using: str | None = None,
        fields: Iterable[str] | None = None,
        from_queryset: models.QuerySet[Self] | None = None,
    ) -> None:
        """See Model.refresh_from_db(). Without ``fields``, ``hits`` is read again, too."""
        if fields is None:  # Django also calls this to load a deferred field.
            forget_numbers(self)
        super().refresh_from_db(using, fields, from_queryset)

    # These functions take the object first, so they are its methods as they are.

    record_hit = recording.record_hit
    arecord_hit = async_method(record_hit)

    get_hits = reading.get_hits
    aget_hits = async_method(get_hits)

    get_visitors = reading.get_visitors
    aget_visitors = async_method(get_visitors)

    hits_by_day = series.hits_by_day
    ahits_by_day = async_method(hits_by_day)

    hits_by_week = series.hits_by_week
    ahits_by_week = async_method(hits_by_week)

    hits_by_month = series.hits_by_month
    ahits_by_month = async_method(hits_by_month)

    visitors_by_day = series.visitors_by_day
    avisitors_by_day = async_method(visitors_by_day)


# A model without a Meta inherits the Meta of its first base. The Meta above would so hide the
# ordering or the default manager of a base to the right.
del HitCountMixin.Meta


class NamedModel(HitCountMixin):
    """A model whose objects can be counted before they have a row: see known_rows.py."""

    class Meta:
        abstract = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._state.adding = False  # It can be counted as if it were saved.


def _on_class_prepared(sender: type[models.Model], **kwargs: Any) -> None:
    """Set up a model. Only now are its managers and parents known."""
    if issubclass(sender, HitCountMixin):
        _replace_manager(sender)
        deletion.register(sender)
    if issubclass(sender, NamedModel):
        named_models.add(sender)
        post_delete.connect(known_rows.clear_known_rows, sender=sender)


def _replace_manager(sender: type[models.Model]) -> None:
    """
    If Django has created the manager ``objects`` itself, replace it with a HitCountManager.

    The mixin does not declare a manager, because that would hide the managers of all bases to its
    right, such as one that creates users or hides drafts.
    """
    managers = sender._meta.managers_map
    made = managers.get("objects")
    if made is None or not made.auto_created or type(made) is not models.Manager:
        return
    opts = sender._meta
    opts.local_managers[:] = [
        manager for manager in opts.local_managers if manager.name != made.name
    ]
    manager: HitCountManager[Any] = HitCountManager()
    manager.auto_created = True
    sender.add_to_class(made.name, manager)


class_prepared.connect(_on_class_prepared, dispatch_uid="django_hitcount.models")


class Counter(NamedModel):
    """
    A named thing that is no object, such as a button or a call of an API, counted like one::

        record_hit(Counter("newsletter"), request)
        get_hits(Counter("newsletter"))

    A name has up to 100 lower case letters, digits and ``_ . : / -``, and begins with a letter or a
    digit. Making a Counter costs nothing. Its first hit makes its row, so that
    ``Counter.objects`` has all that were ever counted, for lists, rankings and the report.

    Raises InvalidArgument for another name.
    """

    name = models.CharField(
        _("name"), primary_key=True, max_length=COUNTER_NAME_MAX_LENGTH, editable=False
    )

    class Meta:
        verbose_name = _("named counter")
        verbose_name_plural = _("named counters")
        default_permissions = ("view", "delete")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name = self.name
        # Not isinstance(): a lazy text would pass, and no driver of a database takes it.
        is_text = issubclass(type(name), str) and len(name) <= COUNTER_NAME_MAX_LENGTH
        if not is_text or not _is_counter_name(name):
            raise InvalidArgument(
                f"Invalid name of a counter: {name!r}. Pass up to {COUNTER_NAME_MAX_LENGTH} lower "
                "case letters, digits and _ . : / -, with a letter or a digit first."
            )

    def __str__(self) -> str:
        return self.name
