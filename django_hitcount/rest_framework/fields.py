"""A field of serializers that shows hits: one read for a list, also if the view forgot it."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Page
from django.db.models import Manager, Model, QuerySet
from django.http import HttpRequest
from rest_framework import serializers

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import find_range
from django_hitcount.counters.numbers import Number, numbers_of
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.numbers import read_numbers
from django_hitcount.outages.waits import CurrentPage


class HitCountField(serializers.IntegerField):
    """
    A field of a serializer with the hits of an object; it is read-only::

        class ArticleSerializer(serializers.ModelSerializer):
            hits = HitCountField()
            hits_this_week = HitCountField(days=7)

    Uses what with_hits(), prefetch_hits() or record_hit() have left on the objects. If they have
    left nothing, the first object of a list reads the numbers of all, for all of these fields: with
    Redis in one round trip, and at most one query; without Redis in a query for the hits of all
    time, and one for those of each number of days.

    A list is a list, a page or a queryset. So are the lists of nested serializers, if their
    objects were read by prefetch_related() or select_related(); if not, each of their objects is
    read by itself. A number that cannot be read now is null, as is that of an unsaved object.

    Args:
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        days: only count the hits of so many days, today included.
    """

    def __init__(
        self, *, counter: str = DEFAULT_COUNTER, days: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(read_only=True, **kwargs)
        self.counter = counter
        self.days = days
        self._unread: set[Number] = set()

    def get_attribute(self, instance: Any) -> int | None:
        """Return the hits of an object, or None. See Field.get_attribute()."""
        if is_unsaved(instance):
            return None
        number = self._number_of(instance)
        hits: int | None = numbers_of(instance).recall(number)
        if hits is None and number not in self._unread:
            self._read_all(instance)
            hits = numbers_of(instance).recall(number)
        return hits

    def _number_of(self, obj: Model) -> Number:
        days = find_range(self.days, None, None) or (None, None)
        return Number(counter_key(obj, counter=self.counter), *days)

    def _read_all(self, instance: Model) -> None:
        """Read the numbers of all objects that are shown beside ``instance``, for all fields."""
        fields = getattr(self.parent, "fields", {}).values()
        beside = [field for field in fields if isinstance(field, HitCountField)] or [self]
        objs = [instance, *(obj for obj in _find_shown(self) if not is_unsaved(obj))]
        numbers = {(field, id(obj)): field._number_of(obj) for field in beside for obj in objs}
        request = _django_request(self.context.get("request"))
        with CurrentPage(request):
            found = read_numbers({*numbers.values()}, on_page=True, for_later_pages=True)
        for field in beside:
            mine = {id(obj): numbers[field, id(obj)] for obj in objs}
            field._unread = {*mine.values()} - found.keys()
            for obj in objs:
                number = mine[id(obj)]
                if number in found:
                    numbers_of(obj).remember({number: found[number]})


def _django_request(request: Any) -> HttpRequest | None:
    found: HttpRequest | None = getattr(request, "_request", request)
    return found


def _find_shown(field: serializers.Field) -> list[Model]:
    """
    Return the objects that the whole answer shows in a field, as far as they are loaded.

    Follows the serializers from the outermost one to that of the field. Costs no query.
    """
    path = [field.parent]
    while getattr(path[-1], "parent", None) is not None:
        path.append(path[-1].parent)
    objs = _loaded(getattr(path[-1], "instance", None))
    for outer, inner in zip(path[:0:-1], path[-2::-1], strict=True):
        if getattr(outer, "child", None) is not inner:  # The items of a list are shown as they are.
            for name in inner.source_attrs:
                objs = [found for obj in objs for found in _loaded_relation(obj, name)]
    return objs


def _loaded(value: object) -> list[Model]:
    """Return the objects of a value that a serializer shows, if getting them costs no query."""
    if isinstance(value, Manager):  # Only a prefetched one has its objects after this.
        value = value.all()
    if isinstance(value, QuerySet):
        value = value._result_cache
    if isinstance(value, Page):
        return _loaded(value.object_list)
    items = value if isinstance(value, list | tuple) else [value]
    return [item for item in items if isinstance(item, Model)]


def _loaded_relation(obj: Model, name: str) -> list[Model]:
    """Return the objects that a relation leads to, if they are loaded."""
    if name in vars(obj):  # Prefetch(to_attr=...)
        return _loaded(vars(obj)[name])
    relation: Any = getattr(type(obj), name, None)
    is_one = hasattr(relation, "is_cached") and relation.is_cached(obj)
    if not is_one and not hasattr(relation, "related_manager_cls"):
        return []
    try:
        return _loaded(getattr(obj, name))
    except ObjectDoesNotExist:
        return []
