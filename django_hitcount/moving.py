"""
Move the counts of an object to another one.

Each row is written under its new key, and deleted under the old one, in the same transaction. So
nothing is lost or counted twice, whatever dies meanwhile, and a second call moves what is left.

The hashes of visitors differ from object to object, so nobody can tell who visited both. Therefore,
visitors of a day stay apart from those of the other object: they get another visitor key, and all
that reads visitors adds up those of different keys.
"""

from __future__ import annotations

import datetime
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

from django.db.models import Model

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters import split
from django_hitcount.counters.keys import CounterKey, DailyVisitorsKey, ObjectKey
from django_hitcount.counters.numbers import forget_numbers
from django_hitcount.counters.primary_keys import object_id_of
from django_hitcount.db import daily_visitors, slots, sql
from django_hitcount.db.counter_keys import content_type_id_of, counter_key
from django_hitcount.db.tables import (
    TABLES_OF_OBJECTS,
    Correction,
    CounterRow,
    DailyVisitors,
    SeenVisitor,
    SlotRow,
    hits_alias,
)
from django_hitcount.db.taking import Taken, take_rows
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.known_rows import make_named_row
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.maintenance.forgetting import OBJECTS_AT_A_TIME
from django_hitcount.twins import async_twin

__all__ = ["amove_hits", "move_hits"]

MOST_ROUNDS = 10
"""How often to look for rows that are left. A flush or a compaction that runs meanwhile may write
some, and so does each hit that comes. More than two rounds are rare without such hits."""

PATIENCE_SECONDS = 10.0
"""How long to retry a transaction that meets locks."""

MOVED = "+"
"""Stands before the name of the old object in a visitor key. No other key has it."""

NAME_BYTES = 8
"""Length of that name: with it, a visitor key has 39 characters."""


def move_hits(obj: Model, *, to: Model) -> None:
    """
    Add all that was counted on ``obj`` to the counts of another object, and leave nothing behind::

        move_hits(duplicate, to=article)
        duplicate.delete()

    Moves the hits of all counters and days, those that wait in Redis, visitors and corrections. The
    objects may be of different models. The sum of their totals is the same at any time. Days follow
    after totals, and numbers of visitors that Redis keeps last, or if the process was killed, with
    the next flush. A visitor of both objects counts as two, and ``is_distinct`` says so: nobody can
    tell who visited both.

    Call it again if it raises, or if its process was killed: it moves what is left. Hits that are
    recorded on ``obj`` meanwhile, or later, stay there until the next call.

    Args:
        obj: the object that hits are taken from. If it has a method ``hit_count_object()``, these
            are the hits that were counted on ``obj`` itself, before it had that method.
        to: the object that gets them.

    Raises InvalidArgument if the objects are the same or one is not saved, RuntimeError within a
    transaction, BufferUnavailable and what flush_hits() raises if Redis is away, and the database's
    error.

    Costs two flushes of the partition of ``obj``, twelve queries, and for each 500 rows of a table
    a transaction of three to seven statements. With Redis, also costs four round trips or more, and
    for each transaction a statement and two round trips.
    """
    source: ObjectKey = content_type_id_of(obj), object_id_of(obj)
    target: ObjectKey = counter_key(to, counter=DEFAULT_COUNTER)[:2]
    if source == target:
        raise InvalidArgument(f"Invalid objects: {obj!r} and {to!r} are the same. Pass two.")
    _transact(lambda slot: None)  # Raises RuntimeError within a transaction, before all else.
    partition = CounterKey(*source, "").partition(get_config().partitions)
    for _ in range(MOST_ROUNDS):
        flush_hits([partition])
        has_moved = _move_rows(source, target)
        get_buffer().discard_objects([source], only_flushed=True)
        if not has_moved:
            break
    else:
        flush_hits([partition])
    make_named_row(target)
    for one in (obj, to):
        forget_numbers(one)


def _transact(work: Callable[[int], None]) -> None:
    slots.write_in_slot(work, patience_seconds=PATIENCE_SECONDS)


def _move_rows(source: ObjectKey, target: ObjectKey) -> bool:
    """Move all rows that are there now. Returns whether there were any."""
    has_moved = False
    totals = [CounterKey(*of, name) for of in (source, target) for name in get_config().counters]
    for model in TABLES_OF_OBJECTS:
        rows = model._default_manager.using(hits_alias()).filter(slots.match_counters([source]))
        for some in split([*rows.values_list("pk", flat=True)], OBJECTS_AT_A_TIME):
            move = partial(_move_piece, model, some, source, target, totals)
            _transact(move)
            has_moved = True
    return has_moved


def _move_piece(
    model: type[CounterRow],
    some: Sequence[int],
    source: ObjectKey,
    target: ObjectKey,
    totals: Collection[CounterKey],
    slot: int,
) -> None:
    """Move rows in a transaction, and pause the ``totals`` of both objects."""
    if model is Correction:
        # They have no key that a row of the other object may have, too.
        rows = Correction.objects.using(hits_alias()).filter(pk__in=some)
        rows.filter(slots.match_counters([source])).update(
            content_type_id=target[0], object_id=target[1]
        )
    else:
        take_rows(model, some, partial(_copy_rows, model, source, target, slot))
    get_buffer().pause_totals(totals)


def _copy_rows(
    model: type[CounterRow],
    source: ObjectKey,
    target: ObjectKey,
    slot: int,
    rows: Taken,
) -> None:
    """Write rows under the key of the other object, in lock order."""
    new: dict[str, Any] = {"content_type_id": target[0], "object_id": target[1], "slot": slot}
    copies: Taken = [{name: new.get(name, value) for name, value in row.items()} for row in rows]
    if model not in (SeenVisitor, DailyVisitors):
        _copy_hits(model, copies)
        return
    for copy in copies:
        copy["visitor_key"] = _moved_key(copy["visitor_key"], source)
    if model is SeenVisitor:
        _copy_seen(copies)
    else:
        _copy_days(target, copies)


def _copy_hits(model: type[CounterRow], copies: Taken) -> None:
    """Add hits to the rows of the other object: of a slot, or for an undo, of an import."""
    columns = (*model.KEY, *(("slot",) if issubclass(model, SlotRow) else ()))
    amounts: Counter[tuple[Any, ...]] = Counter()
    for copy in copies:
        amounts[tuple(copy[column] for column in columns)] += copy["hits"]
    sums = [(*key, amounts[key]) for key in sorted(amounts)]
    sql.insert_or_add(model, (*columns, "hits"), sums)


def _copy_seen(copies: Taken) -> None:
    """Insert visitors, unless an earlier call has moved them, too."""
    # Random, as the key of every SeenVisitor.
    rows = [SeenVisitor(**copy | {"id": 1 + secrets.randbelow(2**62)}) for copy in copies]
    SeenVisitor.objects.using(hits_alias()).bulk_create(rows, ignore_conflicts=True)


def _copy_days(target: ObjectKey, copies: Taken) -> None:
    """
    Insert the numbers of visitors, each under a key of its own.

    If an earlier call has moved visitors of the same day, merges both. They are in ``copies``, too,
    if that call has moved them from here, and another one has moved them back.
    """
    manager = DailyVisitors.objects.using(hits_alias())
    moved: dict[tuple[str, datetime.date, str], DailyVisitors] = {}
    for copy in copies:
        row = DailyVisitors(**copy | {"id": None})
        key = row.counter, row.day, row.visitor_key
        if key in moved:
            _add_earlier(row, moved[key])
        moved[key] = row
    days, visitor_keys = {row.day for row in moved.values()}, {key for *_, key in moved}
    same = manager.filter(
        slots.match_counters([target]), day__in=days, visitor_key__in=visitor_keys
    )
    for earlier in same.order_by(*DailyVisitors.KEY).select_for_update():
        key = earlier.counter, earlier.day, earlier.visitor_key
        if key in moved:
            _add_earlier(moved[key], earlier)
            sql.delete_by_id(DailyVisitors, [earlier.pk])
    in_order = [moved[key] for key in sorted(moved)]
    manager.bulk_create(in_order, batch_size=daily_visitors.SKETCHES_PER_STATEMENT)


def _moved_key(visitor_key: str, source: ObjectKey) -> str:
    """Return the visitor key for visitors of the old object. It stays if they move on."""
    return visitor_key if MOVED in visitor_key else visitor_key + _name_of(source)


def _name_of(source: ObjectKey) -> str:
    text = f"{source[0]}:{source[1]}"
    return MOVED + blake2b(text.encode(), digest_size=NAME_BYTES).hexdigest()


def _add_earlier(row: DailyVisitors, earlier: DailyVisitors) -> None:
    """Add the visitors of a day who were moved earlier. The sketches may have some in common."""
    key = DailyVisitorsKey(
        CounterKey(row.content_type_id, row.object_id, row.counter), row.day, row.visitor_key
    )
    merged = None
    if row.sketch and earlier.sketch:
        for sketch in (earlier.sketch, row.sketch):
            merged = get_buffer().merge_sketches({key: bytes(sketch)}).get(key)
    if merged:
        row.count, row.sketch = max(merged.visitors, row.count, earlier.count), merged.data
    else:
        row.count, row.sketch = row.count + earlier.count, None


amove_hits = async_twin(move_hits)
"""See move_hits()."""
