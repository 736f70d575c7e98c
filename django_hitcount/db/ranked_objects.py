"""Rank the objects of a queryset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import Model, QuerySet

from django_hitcount.counters.primary_keys import convert_key, filter_by_texts
from django_hitcount.counters.rankings import RankedKey
from django_hitcount.db.ranking_scopes import Scope
from django_hitcount.db.rankings import rank_these, read_rankings

FEW = 2000
"""
How many objects a queryset may have so that these alone are ranked.

That is done only if the first ranking of all objects has too few of them.
"""

LARGEST_CHUNK = 1000
"""How many objects one query loads."""


class RankedObject(NamedTuple):
    """An object, and its place in a ranking."""

    key: RankedKey
    obj: Any


def rank_queryset(queryset: QuerySet[Any, Any], scope: Scope, *, limit: int) -> list[RankedObject]:
    """
    Return the objects of ``queryset`` with the most hits, those with the most first.

    Walks down the ranking of all objects of the model, and looks which ones are in ``queryset``. If
    few of them are, but there are few anyway, ranks these alone.

    All hits are from one instant, unless those of few objects are read in several statements.

    Costs a query for the ranking and a query for the objects, if enough of the first objects are in
    ``queryset``. Otherwise, costs more of both. Each query loads four times as many objects as the
    one before, up to 1,000.
    """
    objects = _Objects(queryset)
    for number, ranking in enumerate(read_rankings(scope, at_least=limit)):
        found = objects.take(ranking.keys, limit)
        if len(found) == limit or ranking.is_complete:
            break
        if number == 0 and (ids := _few_ids(queryset)) is not None:
            return objects.take(rank_these(scope, ids), limit)
    return found


def _few_ids(queryset: QuerySet[Any, Any]) -> list[str] | None:
    """Return the object ids of ``queryset``; None if it has many. Costs a query."""
    pks = [*queryset.order_by().values_list("pk", flat=True)[: FEW + 1]]
    return None if len(pks) > FEW else [*{convert_key(queryset.model, pk) for pk in pks}]


class _Objects:
    """Loads objects of a queryset by their keys, and remembers them."""

    def __init__(self, queryset: QuerySet[Any, Any]) -> None:
        self._queryset = queryset.order_by()
        self._found: dict[str, Model | None] = {}
        """The objects by id; None if there is no such object."""

    def take(self, keys: Sequence[RankedKey], limit: int) -> list[RankedObject]:
        """
        Return the first ``limit`` of those objects of ``keys`` that are in the queryset.

        Costs no query for objects that were looked for before.
        """
        taken: list[RankedObject] = []
        start, size = 0, limit
        while start < len(keys) and len(taken) < limit:
            chunk = keys[start : start + min(size, LARGEST_CHUNK)]
            self._load([key.object_key[1] for key in chunk])
            objs = [(key, self._found[key.object_key[1]]) for key in chunk]
            taken += [RankedObject(key, obj) for key, obj in objs if obj is not None]
            start, size = start + len(chunk), 4 * size
        return taken[:limit]

    def _load(self, ids: Sequence[str]) -> None:
        new = [pk for pk in ids if pk not in self._found]
        if not new:
            return
        self._found |= dict.fromkeys(new)
        model = self._queryset.model
        for obj in filter_by_texts(self._queryset, new):
            self._found[convert_key(model, obj.pk)] = obj
