"""A field of serializers that shows hits: one read for a list, also if the view forgot it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, ValuesView
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Page
from django.db.models import Manager, Model, QuerySet
from django.db.models.query import RawQuerySet
from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.fields import get_attribute

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import find_range
from django_hitcount.counters.numbers import Number, numbers_of
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.page_numbers import memory_of
from django_hitcount.prefetching import read_of_objects


class HitCountField(serializers.IntegerField):
    """
    A field of a serializer with the hits of an object; it is read-only::

        class ArticleSerializer(serializers.ModelSerializer):
            hits = HitCountField()
            hits_this_week = HitCountField(days=7)

    Uses what with_hits(), prefetch_hits() or record_hit() have left on the objects, or the page has
    recorded. If they have left nothing, the first object of a list reads the numbers of all, for
    all of these fields. With Redis, that costs one round trip; one more and a query if Redis does
    not know all totals; and a query for each number of days. Without Redis, it costs a query for
    the totals, and one for each number of days.

    A list is a list, a page, a queryset, a set, or the values of a dict. So are the lists of nested
    serializers in dicts and attributes, and in relations that were read by prefetch_related() or
    select_related(); objects of other relations, and of generators, are each read by themselves. A
    number that cannot be read now is null, as is that of an unsaved object. Rows of values() show
    what they have under this name.

    Args:
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        days: only count the hits of so many days, today included.
        source: as for all fields, if they are the hits of another object: ``"author.hits"``, or
            ``"author"``. The last name may be any, if it is no relation.
    """

    def __init__(
        self, *, counter: str = DEFAULT_COUNTER, days: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(read_only=True, **{"allow_null": True, **kwargs})  # For schemas.
        self.counter = counter
        self.days = days
        self._unread: set[Number] = set()
        self._is_read_singly = False
        """Whether the objects of the list are not loaded before they are shown."""

    def get_attribute(self, instance: Any) -> int | None:
        """Return the hits of an object, or None. See Field.get_attribute()."""
        obj = self._find_object(instance)
        if obj is None or is_unsaved(obj):
            return None
        if not isinstance(obj, Model):
            with suppress(KeyError, AttributeError):
                value: int | None = get_attribute(obj, self.source_attrs[-1:])
                return value
        number = self._number_of(obj)
        hits: int | None = numbers_of(obj).recall(number)
        if hits is None and (request := self._request()) is not None:
            hits = memory_of(request).recall(number)  # A hit that waits for the COMMIT is in it.
        if hits is None and number not in self._unread:
            self._read_all(instance)
            hits = numbers_of(obj).recall(number)
        return hits

    def _request(self) -> HttpRequest | None:
        """Return the request of Django, if the serializer has one."""
        request: Any = self.context.get("request")
        found: HttpRequest | None = getattr(request, "_request", request)
        return found

    def _find_object(self, instance: Any) -> Any:
        """Return the object that the source leads to, from what the serializer shows."""
        *path, last = self.source_attrs or [""]
        obj = get_attribute(instance, path)
        return get_attribute(obj, [last]) if _is_object(obj, last) else obj

    def _number_of(self, obj: Model) -> Number:
        days = find_range(self.days, None, None) or (None, None)
        return Number(counter_key(obj, counter=self.counter), *days)

    def _read_all(self, instance: Any) -> None:
        """Read the numbers of all that is shown beside ``instance``, for all fields."""
        fields = getattr(self.parent, "fields", {}).values()
        beside = [field for field in fields if isinstance(field, HitCountField)] or [self]
        missing: list[tuple[Model, Number]] = []
        for field in beside:
            shown = () if self._is_read_singly else _find_shown(field)
            for obj in (field._find_object(instance), *shown):
                if isinstance(obj, Model) and not is_unsaved(obj):
                    number = field._number_of(obj)
                    if numbers_of(obj).recall(number) is None:
                        missing.append((obj, number))
        self._is_read_singly = len({id(obj) for obj, _ in missing}) <= 1
        with CurrentPage(self._request()):
            found = read_of_objects(missing)
        for field in beside:
            field._unread |= {number for _, number in missing} - found.keys()


def _is_object(obj: object, name: str) -> bool:
    """Return whether ``name`` of ``obj`` is an object, and not a number."""
    if isinstance(obj, Model):
        return hasattr(getattr(type(obj), name, None), "is_cached")
    return isinstance(_loaded_value(obj, name), Model)


def _find_shown(field: HitCountField) -> list[Any]:
    """
    Return the objects whose hits the whole answer shows in a field, as far as they are loaded.

    Follows the serializers from the outermost one to that of the field. Costs no query.
    """
    path: list[Any] = [field.parent]
    while getattr(path[-1], "parent", None) is not None:
        path.append(path[-1].parent)
    items = _list_loaded(getattr(path[-1], "instance", None))
    for outer, inner in zip(path[:0:-1], path[-2::-1], strict=True):
        if getattr(outer, "child", None) is not inner:  # The items of a list are shown as they are.
            for name in inner.source_attrs:
                items = _follow(items, name)
    *names, last = field.source_attrs or [""]
    for name in names:
        items = _follow(items, name)
    return [
        found
        for item in items
        for found in (_follow([item], last) if _is_object(item, last) else [item])
    ]


def _list_loaded(value: object) -> list[Any]:
    """Return what a serializer shows of a value, if getting it costs no query."""
    if isinstance(value, Manager):  # Only a prefetched one has its objects after this.
        value = value.all()
    if isinstance(value, QuerySet | RawQuerySet):
        value = vars(value)["_result_cache"]
    if isinstance(value, Page):
        return _list_loaded(value.object_list)
    return [*value] if isinstance(value, list | tuple | AbstractSet | ValuesView) else [value]


def _follow(items: Iterable[Any], name: str) -> list[Any]:
    """Return what ``name`` of each item is, if getting that costs no query."""
    return [found for item in items for found in _list_loaded(_loaded_value(item, name))]


def _loaded_value(item: Any, name: str) -> object:
    if isinstance(item, Mapping):
        return item.get(name)
    if name in getattr(item, "__dict__", ()):  # For instance by Prefetch(to_attr=...).
        return vars(item)[name]
    relation: Any = getattr(type(item), name, None)
    is_one = hasattr(relation, "is_cached") and relation.is_cached(item)
    if not is_one and not hasattr(relation, "related_manager_cls"):
        return None
    try:
        return getattr(item, name)
    except ObjectDoesNotExist:
        return None
