"""What a model inherits to have its hits counted."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, Self

from django.db import models
from django.db.models.signals import class_prepared
from django.http import HttpRequest

from django_hitcount import deletion, recording, totals, unique_visitors
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.fresh_totals import drop_totals, fresh_total
from django_hitcount.querysets import HitCountManager


class HitCountMixin(models.Model):
    """
    Gives a model ``record_hit()``, ``hits`` and more::

        class Article(HitCountMixin, models.Model): ...

    Deleting an object deletes its counts. Where Django makes a manager by itself, as no base
    and no line of the class has one, it is a HitCountManager, whose querysets know
    with_hits(). Managers that the model or a base declares stay as they are.
    """

    class Meta:
        abstract = True

    @property
    def hits(self) -> int:
        """
        The exact total of "views". Costs what get_total() does; never writes.

        Costs nothing on an object that ``with_hits()`` has given its total, for ten seconds:
        so a list that shows it asks once. record_hit() on the object and refresh_from_db()
        end that, and then it is read again.
        """
        total = fresh_total(self, DEFAULT_COUNTER)
        return totals.get_total(self) if total is None else total

    def refresh_from_db(
        self,
        using: str | None = None,
        fields: Iterable[str] | None = None,
        from_queryset: models.QuerySet[Self] | None = None,
    ) -> None:
        """See Model.refresh_from_db(); without ``fields``, ``hits`` is read anew, too."""
        if fields is None:  # A deferred field that is read now is no reason to ask again.
            drop_totals(self)
        super().refresh_from_db(using, fields, from_queryset)

    def hits_between(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> int:
        """See totals.hits_between()."""
        return totals.hits_between(self, first_day, last_day, counter=counter)

    async def ahits_between(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> int:
        """See hits_between()."""
        return await totals.ahits_between(self, first_day, last_day, counter=counter)

    def visitors_on(self, day: datetime.date, *, counter: str = DEFAULT_COUNTER) -> int:
        """See unique_visitors.visitors_on()."""
        return unique_visitors.visitors_on(self, day, counter=counter)

    async def avisitors_on(self, day: datetime.date, *, counter: str = DEFAULT_COUNTER) -> int:
        """See visitors_on()."""
        return await unique_visitors.avisitors_on(self, day, counter=counter)

    def visitors_between(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> unique_visitors.Visitors:
        """See unique_visitors.visitors_between()."""
        return unique_visitors.visitors_between(self, first_day, last_day, counter=counter)

    async def avisitors_between(
        self, first_day: datetime.date, last_day: datetime.date, *, counter: str = DEFAULT_COUNTER
    ) -> unique_visitors.Visitors:
        """See visitors_between()."""
        return await unique_visitors.avisitors_between(self, first_day, last_day, counter=counter)

    def record_hit(
        self,
        request: HttpRequest | None = None,
        *,
        counter: str = DEFAULT_COUNTER,
        amount: int = 1,
        at: datetime.date | datetime.datetime | None = None,
        refuse: recording.Refuse | None = None,
    ) -> recording.Hit:
        """See recording.record_hit()."""
        return recording.record_hit(
            self, request, counter=counter, amount=amount, at=at, refuse=refuse
        )

    async def arecord_hit(
        self,
        request: HttpRequest | None = None,
        *,
        counter: str = DEFAULT_COUNTER,
        amount: int = 1,
        at: datetime.date | datetime.datetime | None = None,
        refuse: recording.Refuse | None = None,
    ) -> recording.Hit:
        """See recording.record_hit()."""
        return await recording.arecord_hit(
            self, request, counter=counter, amount=amount, at=at, refuse=refuse
        )


# Django hands the Meta of the first base on, and with it of this class, which says nothing:
# the ordering or the default manager of a base further right would be lost.
del HitCountMixin.Meta


def _on_class_prepared(sender: type[models.Model], **kwargs: Any) -> None:
    """Only now does a model know its managers, and the parents that its objects count as."""
    if issubclass(sender, HitCountMixin):
        _give_manager(sender)
        deletion.connect(sender)


def _give_manager(sender: type[models.Model]) -> None:
    """
    Put a HitCountManager in the place of the manager that Django made by itself.

    A manager that the mixin declared would hide those of every base to its right: one that
    creates users, or hides drafts.
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


class_prepared.connect(_on_class_prepared, dispatch_uid="django_hitcount.mixins")
