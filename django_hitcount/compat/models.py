"""``obj.hit_count`` of django-hitcount. It is no row: it reads the hits when it is asked."""

from __future__ import annotations

import datetime
import math
from typing import Any, ClassVar, NoReturn

from django.db.models import Model

from django_hitcount.beacon import beacon_token
from django_hitcount.counters.days import LONGEST_RANGE_DAYS
from django_hitcount.reading import get_hits

DAY = datetime.timedelta(days=1)


def days_within(**period: float) -> int:
    """
    Return the number of days, today included, that stands for a timedelta: rounded up.

    Raises TypeError if these are no arguments of a timedelta.
    """
    days = math.ceil(datetime.timedelta(**period) / DAY)
    return min(max(days, 1), LONGEST_RANGE_DAYS)


class NoModel:
    """In place of the options of a model, which a relation to HitCount asks for."""

    def __get__(self, obj: object, owner: type) -> NoReturn:
        raise AttributeError(
            "HitCount of django_hitcount.compat is no model. Remove the GenericRelation to it: "
            'with_hits().order_by("-hits") sorts by hits, and with_hits() filters by them, too.'
        )


class HitCount:
    """The hits of an object."""

    _meta = NoModel()

    class Objects:
        """In place of a manager."""

        @staticmethod
        def get_for_object(obj: Model) -> HitCount:
            return HitCount(obj)

    objects: ClassVar = Objects()

    def __init__(self, obj: Model) -> None:
        self.content_object = obj

    def __str__(self) -> str:
        return str(self.content_object)

    @property
    def pk(self) -> str:
        """The token that a page sends to count a hit."""
        return beacon_token(self.content_object)

    @property
    def hits(self) -> int:
        """The hits of all time. Costs what get_hits() costs."""
        return get_hits(self.content_object)

    def hits_in_last(self, **period: float) -> int:
        """Return the hits of some days; see days_within(). Costs what get_hits() costs."""
        return get_hits(self.content_object, days=days_within(**period))


class HitCountMixin:
    """For a model: ``obj.hit_count.hits``. The model may come before it in the bases."""

    @property
    def hit_count(self: Any) -> HitCount:
        return HitCount(self)
