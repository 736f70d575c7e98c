"""Rank objects: the most viewed ones, and those whose hits grow."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from django.db.models import Manager, Model, QuerySet

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import day_of, find_range, list_days
from django_hitcount.counters.keys import check_counter
from django_hitcount.counters.primary_keys import (
    convert_key,
    filter_by_texts,
    is_part_of_class,
    key_type,
)
from django_hitcount.counters.rankings import (
    TREND_UNIT,
    RankedKey,
    Scope,
    Weights,
    check_limit,
    rank_keys,
    weigh_days,
    weigh_trend,
)
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.expressions import HitsInTables
from django_hitcount.db.rankings import rank_these, read_rankings
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.twins import async_twin

__all__ = ["apopular", "atrending", "popular", "trending"]

FEW = 2000
"""
How many objects a queryset may have so that these alone are ranked.

That is done only if the first ranking of all objects has too few of them.
"""

LARGEST_CHUNK = 1000
"""How many objects one query loads."""

Objects: TypeAlias = "type[Model] | QuerySet[Any, Any] | Manager[Any]"

Source: TypeAlias = "Objects | Iterable[Objects]"
"""What to rank: a model, a queryset or a manager, or several of them together."""


Place: TypeAlias = tuple[RankedKey, Any]
"""An object's key with its hits, and the object."""


def popular(
    source: Source,
    limit: int,
    *,
    counter: str = DEFAULT_COUNTER,
    days: int | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    name: str = "hits",
) -> list[Any]:
    """
    Return the objects with the most hits, those with the most first.

    Each has its hits as ``hits``. These are exact, except that with Redis, hits since the last
    flush are missing. Objects without hits, or with a sum of 0 or less, are left out. Equal objects
    are in the order of their primary keys as text, byte by byte.

    Args:
        source: a model (its default manager counts), a queryset, or a list of them, whose objects
            are then ranked together. Its order does not matter.
        limit: how many objects to return, up to 1,000,000.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        days: count only the hits of the last ``days`` days, today included.
        first_day, last_day: in place of ``days``, count only the hits from one day to another, both
            included. The last day is today by default.
        name: the attribute that holds the hits.

    Raises InvalidArgument if an argument is invalid, or objects have something else in the
    attribute, such as a field, and the database's error if the database does not answer.

    Costs two queries per model: one for the ranking, one for the objects. Costs a few more if
    objects are filtered out, or if many have equally many hits.
    """
    ends = find_range(days, first_day, last_day)
    weights = weigh_days(list_days(*ends)) if ends else None
    return _rank(source, limit, counter, weights, name)


def trending(
    source: Source, limit: int, *, counter: str = DEFAULT_COUNTER, half_life_days: float = 3
) -> list[Any]:
    """
    Return the objects that are viewed most lately, those with the highest score first.

    Each has its score as ``trend_score``: a hit of today counts 1, and one ``half_life_days`` ago
    counts half as much. Hits from before ten half-lives do not count; each would count less than a
    thousandth. ``obj.hits`` stays the total of all time. For ``source``, ``limit`` and ``counter``,
    see popular().

    Raises InvalidArgument if ``half_life_days`` is not a number above 0 and up to 366, and what
    popular() raises.

    Costs what popular() costs over ten half-lives.
    """
    weights = weigh_trend(day_of(), half_life_days)
    return _rank(source, limit, counter, weights, "trend_score", TREND_UNIT)


def _rank(
    source: Source, limit: int, counter: str, weights: Weights | None, name: str, unit: int = 0
) -> list[Any]:
    """Rank objects. Store their hits as ``name``; as multiples of ``unit`` if that is not 0."""
    check_limit(limit)
    check_counter(counter)
    querysets = [*_querysets(source)]
    for queryset in querysets:
        _check_name(queryset, name)
    places: list[Place] = []
    for queryset in querysets:
        models = [content_type_id_of(queryset.model)]
        scope = Scope(content_type_ids=models, counter=counter, weights=weights)
        places += rank_queryset(queryset, scope, limit=limit)
    # Two querysets may have an object in common.
    objects = dict(reversed(places))
    ranked = rank_keys({key.object_key: key for key, _ in reversed(places)}.values())[:limit]
    for key in ranked:
        setattr(objects[key], name, key.hits / unit if unit else key.hits)
    return [objects[key] for key in ranked]


def rank_queryset(queryset: QuerySet[Any, Any], scope: Scope, *, limit: int) -> list[Place]:
    """
    Return the objects of ``queryset`` with the most hits, those with the most first.

    Walks down the ranking of all objects of the model, and looks which ones are in ``queryset``. If
    few of them are, but there are few anyway, ranks these alone.

    All hits are from one instant, unless those of few objects are read in several statements.

    Costs a query for the ranking and a query for the objects, if enough of the first objects are in
    ``queryset``. Otherwise, costs more of both. Each query loads four times as many objects as the
    one before, up to 1,000.
    """
    known: dict[str, Model | None] = {}
    for number, ranking in enumerate(read_rankings(scope, at_least=limit)):
        found = _take(queryset, ranking.keys, limit, known)
        if len(found) == limit or ranking.is_complete:
            break
        if number == 0 and (ids := _few_ids(queryset)) is not None:
            return _take(queryset, rank_these(scope, ids), limit, known)
    return found


def _few_ids(queryset: QuerySet[Any, Any]) -> list[str] | None:
    """Return the object ids of ``queryset``; None if it has many. Costs a query."""
    pks = [*queryset.order_by().values_list("pk", flat=True)[: FEW + 1]]
    return None if len(pks) > FEW else [*{convert_key(queryset.model, pk) for pk in pks}]


def _take(
    queryset: QuerySet[Any, Any],
    keys: Sequence[RankedKey],
    limit: int,
    known: dict[str, Model | None],
) -> list[Place]:
    """
    Return the first ``limit`` of those objects of ``keys`` that are in the queryset.

    Adds to ``known`` the objects that it looks for, by id; None if there is no such object. Costs
    no query for those that are there already.
    """
    taken: list[Place] = []
    start, size = 0, limit
    while start < len(keys) and len(taken) < limit:
        chunk = keys[start : start + min(size, LARGEST_CHUNK)]
        ids = [key.object_key[1] for key in chunk]
        if new := [pk for pk in ids if pk not in known]:
            known |= dict.fromkeys(new)
            objs = filter_by_texts(queryset.order_by(), new)
            known |= {convert_key(queryset.model, obj.pk): obj for obj in objs}
        found = zip(chunk, map(known.get, ids), strict=True)
        taken += [(key, obj) for key, obj in found if obj is not None]
        start, size = start + len(chunk), 4 * size
    return taken[:limit]


def _querysets(source: Any) -> Iterator[QuerySet[Any, Any]]:
    """Yield the querysets that ``source`` stands for."""
    if isinstance(source, list | tuple | set):
        if not source:
            raise InvalidArgument(f"Invalid source: {source!r} is empty. Pass at least one model.")
        for part in source:
            yield from _querysets(part)
    elif isinstance(source, QuerySet):
        yield _check_queryset(source)
    elif isinstance(source, Manager):
        yield _check_queryset(source.all())
    elif isinstance(source, type) and issubclass(source, Model) and not source._meta.abstract:
        yield _check_queryset(source._default_manager.all())
    else:
        raise InvalidArgument(
            f"Invalid source: {source!r}. Pass a model, a queryset, or a list of them."
        )


def _check_queryset(queryset: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
    model: Any = queryset.model
    key_type(model)
    query = queryset.query
    annotated: Any = [query.where, *query.annotations.values()]
    mistake = ""
    if query.is_sliced or query.combinator or query.distinct_fields:
        mistake = "is sliced, a union, or has distinct fields. Pass it without."
    elif any(part.contains_over_clause for part in annotated):
        # A ranking loads some of the objects. A window function would take them for all.
        mistake = "has a window function. Pass it without."
    elif queryset._fields is not None:  # type: ignore[attr-defined]  # Set by values().
        mistake = "returns values instead of objects. Pass it without values() and values_list()."
    if mistake:
        raise InvalidArgument(f"Invalid queryset of {model._meta.label}: it {mistake}")
    return queryset


def _check_name(queryset: QuerySet[Any, Any], name: str) -> None:
    """Raise InvalidArgument if objects have something else under ``name``, as a field."""
    annotation = queryset.query.annotations.get(name)
    is_annotated = annotation and not isinstance(annotation, HitsInTables)
    if is_annotated or is_part_of_class(queryset.model, name):
        owner = "the queryset" if is_annotated else queryset.model._meta.label
        raise InvalidArgument(
            f"Invalid source: {name!r} is part of {owner}, and the ranking would overwrite it. "
            "Rename it, or pass another name."
        )


apopular = async_twin(popular)
"""See popular()."""

atrending = async_twin(trending)
"""See trending()."""
