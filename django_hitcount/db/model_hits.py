"""
SQL on DailyModelHits: for each model, counter and day, the sum of slot 0 of all objects.

Whatever adds to slot 0 of DailyHitSlot, or deletes from it, changes these rows in the same
transaction. So together with slots 1..N, they are the hits of a model at any instant.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from django.db import connections

from django_hitcount.db.tables import DailyHitSlot, DailyModelHits
from django_hitcount.db.upserts import insert_or_add

ModelDay: TypeAlias = tuple[int, str, datetime.date]
"""A content type id, a counter and a day: the key of DailyModelHits."""


def sum_slot_0(pks: Sequence[int], *, using: str) -> Counter[ModelDay]:
    """Sum up those of these rows of DailyHitSlot that are in slot 0. Costs a query."""
    connection, key = connections[using], ", ".join(DailyModelHits.KEY)
    table = connection.ops.quote_name(DailyHitSlot._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {key}, SUM(hits) FROM {table} "  # noqa: S608 - our own names
            f"WHERE is_compacted = true AND {match_rows(pks)} GROUP BY {key}"
        )
        return Counter({(model, name, day): int(n) for model, name, day, n in cursor.fetchall()})


def match_rows(pks: Sequence[int]) -> str:
    """
    Return a condition for rows with these ids.

    Has no parameters, since a driver takes longer for thousands of them than the server for the
    rows.
    """
    return f"id IN ({', '.join(map(str, pks))})"


def add(amounts: Counter[ModelDay], *, using: str) -> None:
    """
    Add amounts, in the order of their keys. An amount may be negative.

    Call it last in a transaction: all that fold hits of these days wait for the same few rows.
    Costs a statement per thousand amounts, and none without one.
    """
    rows = [(*key, amounts[key]) for key in sorted(amounts)]
    insert_or_add(DailyModelHits, (*DailyModelHits.KEY, "hits"), rows, using)
