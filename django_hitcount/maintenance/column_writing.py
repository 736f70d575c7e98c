"""
Write totals into columns of a project's own models: HitCountField.

Each write locks the rows of the objects, then reads the sums, then writes those that differ. So
two processes that write one column at once never write an older sum over a newer one. No signals
are sent, and no other column changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from django.db import connections, models, router
from django.db.models import Case, Max, Value, When

from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.sums import read_sums
from django_hitcount.db.tables import StaleTotal, hits_alias
from django_hitcount.db.total_columns import HitCountField, mark_stale, total_columns
from django_hitcount.db.transactions import in_transaction, limit_waits, take_write_lock
from django_hitcount.maintenance import run_all

OBJECTS_AT_A_TIME = 300
"""Few enough for the 999 parameters of an old SQLite: an UPDATE has three for each object."""

LOCK_WAIT_SECONDS = 0.05
"""How long a write waits for locks of the site, while it holds some itself."""

PATIENCE_SECONDS = 10.0
"""How long to retry a write that meets locks. After that, the next run does it."""


class Written(NamedTuple):
    """What a write did."""

    objects: int
    """How many objects were read."""

    changed: int
    """How many columns of them were not up to date."""

    locked: Collection[str]
    """The keys of objects that another session has locked, as text."""


def write_stale_totals() -> None:
    """
    Write the totals that have changed since their columns were written.

    Leaves objects that another session has locked to the next call, and skips deleted ones. If this
    fails for one model, continues with the others.

    Costs nothing if no model has a HitCountField. Otherwise, costs a query, and for each model and
    300 objects a query, a transaction of three statements or more, and a DELETE.

    Raises an ExceptionGroup of the errors.
    """
    with run_all("Some total columns were not written.") as step:
        for model in total_columns():
            with step(f"writing the totals of {model._meta.label}"):
                _write_stale(model)


def _write_stale(model: type[models.Model]) -> None:
    stale = StaleTotal.objects.using(hits_alias()).filter(content_type_id=content_type_id_of(model))
    newest = stale.aggregate(newest=Max("pk"))["newest"] or 0
    after = 0
    while piece := [
        *stale.filter(pk__gt=after, pk__lte=newest)
        .order_by("pk")
        .values_list("pk", "object_id")[:OBJECTS_AT_A_TIME]
    ]:
        written = write_totals(model, {object_id for _, object_id in piece})
        # After the COMMIT of the write: if this process dies before, the next one writes again.
        done = [pk for pk, object_id in piece if object_id not in written.locked]
        stale.filter(pk__in=done)._raw_delete(hits_alias())
        after = piece[-1][0]


def fill_totals(model: type[models.Model]) -> Iterator[Written]:
    """
    Write the totals of all objects of a model that has a HitCountField, 300 at a time.

    Yields after each piece what it did. May end at any time, and be called again. Marks objects
    that another session has locked, so that the next compact_hits writes them.

    Costs for each 300 objects what write_totals() costs, and a query.
    """
    using = router.db_for_write(model)
    rows: models.QuerySet[Any, Any] = models.QuerySet(model, using=using).order_by("pk")
    remaining = rows
    while pks := [*remaining.values_list("pk", flat=True)[:OBJECTS_AT_A_TIME]]:
        written = write_totals(model, {convert_key(model, pk) for pk in pks})
        mark_stale(_keys(model, written.locked))
        yield written
        remaining = rows.filter(pk__gt=pks[-1])


def write_totals(model: type[models.Model], object_ids: Collection[str]) -> Written:
    """
    Write the totals of up to 300 objects into the columns of their model, where they differ.

    Costs a transaction of three statements or more.

    Raises OperationalError if it meets locks for longer than 10 seconds.
    """
    using = router.db_for_write(model)
    write = partial(_write, model, object_ids, using)
    return in_transaction(write, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True)


def _write(model: type[models.Model], object_ids: Collection[str], using: str) -> Written:
    """See write_totals(). The caller opens the transaction."""
    fields, changed = total_columns()[model], 0
    with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
        take_write_lock(using, model)
        rows = _lock(find_by_texts(model, object_ids, using=using).order_by("pk"), using)
        names = [field.attname for field in fields]
        found = {convert_key(model, row["pk"]): row for row in rows.values("pk", *names)}
        # Read the sums only now: until the COMMIT, no other process writes these columns.
        keys = _keys(model, found)
        sums, _ = read_sums(keys, ())
        for field in fields:
            changes = {
                found[key.object_id]["pk"]: sums.get(key, 0)
                for key in keys
                if key.counter == field.counter
                and found[key.object_id][field.attname] != sums.get(key, 0)
            }
            changed += _update(model, field, changes, using)
        # Of those that were not found, some are deleted, and the others are locked.
        skipped = find_by_texts(model, {*object_ids} - found.keys(), using=using)
        locked = {convert_key(model, pk) for pk in skipped.values_list("pk", flat=True)}
        return Written(len(found), changed, locked)


def _keys(model: type[models.Model], object_ids: Collection[str]) -> list[CounterKey]:
    """Return the keys of the counters of objects that have a column."""
    content_type_id = content_type_id_of(model)
    counters = {field.counter for field in total_columns()[model]}
    return [CounterKey(content_type_id, *key) for key in product(object_ids, counters)]


def _lock(rows: models.QuerySet[Any, Any], using: str) -> models.QuerySet[Any, Any]:
    """Lock rows that no other session has locked. Rows may still be inserted that refer to them."""
    features = connections[using].features
    return rows.select_for_update(
        skip_locked=features.has_select_for_update_skip_locked,
        no_key=features.has_select_for_no_key_update,
    )


def _update(
    model: type[models.Model], field: HitCountField, totals: dict[Any, int], using: str
) -> int:
    """Set the column of rows by primary key. Costs a statement, and nothing without rows."""
    cases = [When(pk=pk, then=Value(total)) for pk, total in totals.items()]
    rows: models.QuerySet[Any, Any] = models.QuerySet(model, using=using).order_by()
    value = Case(*cases, output_field=models.BigIntegerField())
    return rows.filter(pk__in=[*totals]).update(**{field.attname: value})
