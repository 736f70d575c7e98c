"""Order a list by hits, and find the views that want to but cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.db.models.manager import BaseManager
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework import filters
from rest_framework.generics import GenericAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

from django_hitcount.conf import get_config
from django_hitcount.counters import list_values
from django_hitcount.db.expressions import HitsInTables, VisitorsInTables
from django_hitcount.querysets import default_name
from django_hitcount.rest_framework.fields import HitCountField

IN_TABLES = "_in_tables"
"""The end of the names of annotations that only order."""

KNOWN_PACKAGES = ("rest_framework.", "django_filters.", "django_hitcount.")
"""Packages of whose filters it is known whether they order by hits."""

SAYS_ORDER = ("filter_backends", "ordering", "ordering_fields", "queryset", "serializer_class")
"""Attributes of a view that say how it orders. as_view() may change them."""


class HitsOfList(NamedTuple):
    """The hits that a list is ordered by: those of a counter, of all time or of the last days."""

    counter: str
    days: int | None = None

    @property
    def annotation(self) -> str:
        """The name that with_hits() gives those of all time; with the days for those of days."""
        name = default_name("hits", self.counter)
        return name if self.days is None else f"{name}_of_{self.days}_days"


class _InOrder(Coalesce):
    """An expression around the hits in the tables, so that no iterable makes them exact."""


class HitCountOrderingFilter(filters.OrderingFilter):
    """
    Orders by hits, too: ``?ordering=-hits``::

        class ArticleViewSet(viewsets.ModelViewSet):
            filter_backends = [HitCountOrderingFilter]
            ordering_fields = ["hits", "title"]

    "hits" are those of the counter "views", and "downloads_hits" those of "downloads". A
    HitCountField of the serializer is known by its own name, too, with its ``days``; but not the
    hits of other objects. Objects with equal hits are ordered by primary key, so that pages have no
    object twice.

    With ``ordering_fields = "__all__"``, those fields are allowed beside all columns. Costs a
    subquery for every object of the queryset, and orders by the hits in the tables: with Redis, by
    all hits up to the last flush. For many objects, order by a column of their hits of all time:
    django_hitcount.fields.HitCountField.
    """

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> Any:
        """Return the terms to order by. CursorPagination asks for those of an ordered queryset."""
        ordering = super().get_ordering(request, queryset, view)
        annotations = queryset.query.annotations.values()
        if ordering and any(isinstance(each, _InOrder) for each in annotations):
            return _make_terms(queryset, ordering, view)[1]
        return ordering

    def get_valid_fields(self, queryset: Any, view: Any, context: Any = None) -> Any:
        """Return the names that a request may order by, and their labels."""
        orderings = _find_orderings(queryset, view)
        found = [
            (name, label)
            for name, label in super().get_valid_fields(queryset, view, context or {})
            if orderings.get(name, True)
        ]
        if getattr(view, "ordering_fields", self.ordering_fields) == "__all__":
            names = [name for name in _find_fields(view) if orderings.get(name)]
            found += [(name, name) for name in names if name not in dict(found)]
        return found

    def get_default_valid_fields(self, queryset: Any, view: Any, context: Any = None) -> Any:
        """Without ``ordering_fields``: those of the serializer, but no hits of other objects."""
        ours = {
            (field.source or name).replace(".", "__"): name
            for name, field in _find_fields(view).items()
        }
        orderings = _find_orderings(queryset, view)
        return [
            (ours.get(source, source), label)
            for source, label in super().get_default_valid_fields(queryset, view, context or {})
            if source not in ours or orderings.get(ours[source])
        ]

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Order a queryset as the request asks for."""
        ordering = self.get_ordering(request, queryset, view)
        if not ordering:
            return queryset
        queryset, terms = _make_terms(queryset, ordering, view)
        return queryset.order_by(*terms)


def _make_terms(queryset: Any, ordering: Iterable[Any], view: Any) -> tuple[Any, list[Any]]:
    """Return a queryset that knows the hits that it is ordered by, and the terms of the order."""
    terms: list[Any] = []
    is_by_hits, orderings = False, _find_orderings(queryset, view)
    for term in dict.fromkeys(ordering):  # A request can repeat a term a thousand times.
        name = term.removeprefix("-") if isinstance(term, str) else ""
        if hits := orderings.get(name):
            queryset, known = _add_hits(queryset, hits, view)
            is_by_hits, term = True, f"-{known}" if term.startswith("-") else known
        elif _has_cursor(view) and isinstance(
            queryset.query.annotations.get(name), VisitorsInTables
        ):
            queryset = queryset.annotate(**{f"{name}{IN_TABLES}": _InOrder(name, 0)})
            is_by_hits, term = True, f"{term}{IN_TABLES}"
        terms.append(term)
    return queryset, [*terms, "pk"] if is_by_hits else terms


def _add_hits(queryset: Any, hits: HitsOfList, view: Any) -> tuple[Any, str]:
    """Return a queryset that knows the hits in the tables, and under which name."""
    # The position of a cursor must be the number that the query compares, not the exact one.
    has_cursor = _has_cursor(view)
    for name, known in queryset.query.annotations.items():
        if isinstance(known, HitsInTables) and HitsOfList(known.counter) == hits and not has_cursor:
            return queryset, name
    name = f"{hits.annotation}{IN_TABLES}"
    if name in queryset.query.annotations:
        return queryset, name
    add = queryset.annotate if has_cursor else queryset.alias
    in_tables = HitsInTables(queryset.model, counter=hits.counter, days=hits.days)
    return add(**{name: _InOrder(in_tables, 0)}), name


def _has_cursor(view: Any) -> bool:
    paginator = getattr(view, "pagination_class", None)
    return isinstance(paginator, type) and issubclass(paginator, CursorPagination)


def _find_orderings(queryset: Any, view: Any) -> dict[str, HitsOfList | None]:
    """
    Return the hits that names order by. None is for those of other objects: nothing orders by them.
    """
    columns = {field.name for field in queryset.model._meta.get_fields()}
    of_counters = map(HitsOfList, get_config().counters)
    found: dict[str, HitsOfList | None] = {hits.annotation: hits for hits in of_counters}
    fields = _find_fields(view)
    for name, field in fields.items():
        is_own = "." not in (field.source or "") and field.source not in columns
        found[name] = HitsOfList(field.counter, field.days) if is_own else None
    for name, annotation in queryset.query.annotations.items():
        if not isinstance(annotation, HitsInTables):
            found.pop(name, None)
        elif not (name in fields and found[name]):
            found[name] = HitsOfList(annotation.counter)
    return {name: hits for name, hits in found.items() if name not in columns}


def _find_fields(view: Any) -> dict[str, HitCountField]:
    """Return the fields with hits that the serializer of a view has."""
    serializer = getattr(view, "serializer_class", None)
    if hasattr(view, "get_serializer_class"):
        with suppress(AssertionError):  # As DRF says that the view has none.
            serializer = view.get_serializer_class()
    declared: dict[str, Any] = getattr(serializer, "_declared_fields", {})
    return {name: each for name, each in declared.items() if isinstance(each, HitCountField)}


def find_lost_orderings() -> Iterator[tuple[type[GenericAPIView], tuple[str, ...]]]:
    """Yield the views of the URLconf that want to order by hits but cannot, and these names."""
    found = (
        (view, tuple(_lost_orderings(view, given))) for view, given in _find_views(get_resolver())
    )
    yield from (lost for lost in dict.fromkeys(found) if lost[1])


def _find_views(
    resolver: URLResolver,
) -> Iterator[tuple[type[GenericAPIView], Mapping[str, Any]]]:
    """Yield the classes of all views, and the attributes that as_view() got."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _find_views(pattern)
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            if isinstance(view, type) and issubclass(view, GenericAPIView):
                yield view, getattr(pattern.callback, "initkwargs", {})


def _lost_orderings(view: type[GenericAPIView], given: Mapping[str, Any]) -> list[str]:
    """
    Return the names of hits that a view wants to order by, if it has no filter that does it.

    A view or a filter that does more than those of DRF and ours may order by itself.
    """
    says = {name: given.get(name, getattr(view, name, None)) for name in SAYS_ORDER}
    seen, queryset, backends = SimpleNamespace(**says), says["queryset"], says["filter_backends"]
    if isinstance(queryset, BaseManager):
        queryset = queryset.all()
    if not isinstance(queryset, QuerySet) or not isinstance(backends, list | tuple):
        return []
    functions = [view.get_queryset, view.filter_queryset]
    functions += [getattr(each, "filter_queryset", each) for each in backends]
    if not all(each.__module__.startswith(KNOWN_PACKAGES) for each in functions):
        return []
    wanted = [*list_values(seen.ordering), *list_values(seen.ordering_fields)]
    knows_hits = any(issubclass(each, HitCountOrderingFilter) for each in backends)
    is_free = any(issubclass(each, filters.OrderingFilter) for each in backends) and not knows_hits
    if seen.ordering_fields is None and is_free:
        # Of a field whose source is a column, DRF takes the column.
        columns = {field.name for field in queryset.model._meta.get_fields()}
        fields = _find_fields(seen).items()
        wanted += [name for name, field in fields if field.source not in columns]
    # An item may be a name, a pair of a name and a label, or an expression.
    firsts = [[*item, None][0] if isinstance(item, list | tuple) else item for item in wanted]
    names = dict.fromkeys(item.removeprefix("-") for item in firsts if isinstance(item, str))
    known, orderings = queryset.query.annotations, _find_orderings(queryset, seen)
    found = {name: hits for name, hits in orderings.items() if hits is None or not knows_hits}
    return [name for name in names if name in found and name not in known]
