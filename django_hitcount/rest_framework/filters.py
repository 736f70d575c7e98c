"""Order a list by hits, and find the views that want to but cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework import filters
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request

from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.querysets import with_hits
from django_hitcount.rest_framework.fields import HitCountField


class HitCountOrderingFilter(filters.OrderingFilter):
    """
    Orders by hits, too: ``?ordering=-hits``::

        class ArticleViewSet(viewsets.ModelViewSet):
            filter_backends = [HitCountOrderingFilter]
            ordering_fields = ["hits", "title"]

    "hits" are those of the counter "views", and "downloads_hits" those of "downloads". A
    HitCountField of the serializer without ``days`` is known by its own name, too. Objects with
    equal hits are ordered by primary key, so that pages have no object twice.

    Orders as with_hits() does, by the hits in the tables, and costs its subquery for every object
    of the queryset. For many objects, order by a column: django_hitcount.fields.HitCountField.
    """

    def get_default_valid_fields(self, queryset: Any, view: Any, context: Any = None) -> Any:
        """Without ``ordering_fields``: those of the serializer, but not the hits of some days."""
        declared = _declared_fields(view)
        return [
            (name, label)
            for name, label in super().get_default_valid_fields(queryset, view, context or {})
            if not isinstance(declared.get(name), HitCountField)
            or _counter_of(name, queryset, view)
        ]

    def filter_queryset(self, request: Request, queryset: Any, view: Any) -> Any:
        """Order a queryset as the request asks for, and annotate it with the hits for that."""
        ordering = self.get_ordering(request, queryset, view)
        if not ordering:
            return queryset
        terms: list[Any] = []
        is_by_hits = False
        for term in ordering:
            name = term.removeprefix("-") if isinstance(term, str) else ""
            if counter := _counter_of(name, queryset, view):
                alias = _name_of(counter)
                if alias not in queryset.query.annotations:
                    queryset = with_hits(queryset, counter=counter)
                is_by_hits, term = True, term.replace(name, alias)
            terms.append(term)
        return queryset.order_by(*terms, "pk") if is_by_hits else queryset.order_by(*terms)


def _name_of(counter: str) -> str:
    """Return the name of the annotation of a counter; see with_hits()."""
    return "hits" if counter == DEFAULT_COUNTER else f"{counter}_hits"


def _counter_of(name: str, queryset: Any, view: Any) -> str | None:
    """Return the counter that ``name`` orders by; None if it is something else."""
    columns = {field.name for field in queryset.model._meta.get_fields()}
    if name in columns or (name in queryset.query.annotations and name not in _names_of_hits()):
        return None
    field = _declared_fields(view).get(name)
    if isinstance(field, HitCountField):
        return field.counter if field.days is None else None
    return _names_of_hits().get(name)


def _names_of_hits() -> dict[str, str]:
    """Return the counters by the names of their annotations."""
    return {_name_of(counter): counter for counter in get_config().counters}


def _declared_fields(view: Any) -> dict[str, Any]:
    """Return the fields that the serializer of a view, or of a class of views, declares."""
    serializer = None
    if isinstance(view, type):
        serializer = getattr(view, "serializer_class", None)
    elif hasattr(view, "get_serializer_class"):
        serializer = view.get_serializer_class()
    found: dict[str, Any] = getattr(serializer, "_declared_fields", {})
    return found


def find_lost_orderings() -> Iterator[tuple[type[GenericAPIView], list[str]]]:
    """Yield the views of the URLconf that want to order by hits but cannot, and these names."""
    for view in dict.fromkeys(_find_views(get_resolver())):
        if names := _lost_orderings(view):
            yield view, names


def _find_views(resolver: URLResolver) -> Iterator[type[GenericAPIView]]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _find_views(pattern)
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            if isinstance(view, type) and issubclass(view, GenericAPIView):
                yield view


def _lost_orderings(view: Any) -> list[str]:
    """
    Return the names of hits that a view wants to order by, if it has no filter that does it.

    A view that makes its queryset itself may annotate it, so that a filter of DRF is enough.
    """
    backends = [each for each in view.filter_backends if isinstance(each, type)]
    if any(issubclass(each, HitCountOrderingFilter) for each in backends):
        return []
    is_ordered = any(issubclass(each, filters.OrderingFilter) for each in backends)
    if is_ordered and (view.queryset is None or view.get_queryset != GenericAPIView.get_queryset):
        return []
    default = getattr(view, "ordering", None) or ()
    wanted = [*([default] if isinstance(default, str) else default)]
    allowed = getattr(view, "ordering_fields", None)
    if allowed is None and is_ordered:
        declared = _declared_fields(view)
        wanted += [name for name, field in declared.items() if isinstance(field, HitCountField)]
    elif isinstance(allowed, list | tuple):
        wanted += [item if isinstance(item, str) else item[0] for item in allowed]
    names = [name.removeprefix("-") for name in wanted if isinstance(name, str)]
    return [name for name in dict.fromkeys(names) if _is_lost(name, view)]


def _is_lost(name: str, view: Any) -> bool:
    if view.queryset is None:
        return name in _names_of_hits()
    if name in view.queryset.query.annotations:
        return False
    return _counter_of(name, view.queryset, view) is not None
