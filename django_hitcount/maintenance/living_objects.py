"""Find out which deleted objects exist: one with the same key may have been created again."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from django.contrib.contenttypes.models import ContentType
from django.db import connections, models, router

from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables import DeletedObject
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import InvalidKey

Location = tuple[int, str]
"""A content type id, and a database that may have objects of this model."""

logger = logging.getLogger("django_hitcount")


def find_living(
    deleted: Sequence[DeletedObject], unanswered: set[Location]
) -> Iterator[tuple[DeletedObject, bool]]:
    """
    Return each row with whether its object exists.

    Leaves out rows if a database that may have the object does not answer. Does not ask the
    locations in ``unanswered``, and adds those that do not answer now.

    Costs a query per model and database that an object may be in.
    """
    by_location: dict[Location, list[DeletedObject]] = defaultdict(list)
    for row in deleted:
        for database in _databases_of(row):
            by_location[row.content_type_id, database].append(row)
    living: set[DeletedObject] = set()
    unknown: set[DeletedObject] = set()
    for location, rows in by_location.items():
        existing = _find_existing(location, rows, unanswered)
        living |= {row for row in rows if existing is not None and row.object_id in existing}
        unknown |= {*rows} if existing is None else set()
    return ((row, row in living) for row in deleted if row not in unknown)


def _find_existing(
    location: Location, rows: Iterable[DeletedObject], unanswered: set[Location]
) -> set[str] | None:
    """Return the ids of those objects that exist; None if the database does not answer."""
    if location in unanswered:
        return None
    try:
        return _read_existing(*location, [row.object_id for row in rows])
    except DATABASE_ERRORS as exc:
        unanswered.add(location)
        logger.error(
            "Hits of deleted objects of content type %d are left to the next flush_hits or "
            "compact_hits, since database %r does not say whether the objects exist: %s",
            *location,
            exc,
        )
        return None


def _databases_of(row: DeletedObject) -> set[str]:
    """
    Return the databases that may have the object.

    If the row is in the database that the object was deleted from, both were committed together.
    If the object exists there, it was created again. The hits from before the deletion are not its
    own, so until they are deleted, that database is left out.
    """
    model = find_model(row.content_type_id)
    if not model:
        return set()
    databases = {row.database, row.saved_in, router.db_for_write(model)}
    if row.database == hits_alias() and not row.swept_at:
        databases.discard(row.database)
    return databases & {*connections}


def find_model(content_type_id: int) -> type[models.Model] | None:
    """Return a content type's model; None if its app is gone. Costs a query once per process."""
    content_types = ContentType.objects.db_manager(hits_alias())
    try:
        return content_types.get_for_id(content_type_id).model_class()
    except ContentType.DoesNotExist:
        return None


def _read_existing(content_type_id: int, database: str, object_ids: Iterable[str]) -> set[str]:
    """
    Return the ids of those objects that are in the database.

    Does not use the model's managers: some hide drafts, or objects that were deleted softly.
    """
    model = find_model(content_type_id)
    if not model:
        return set()
    try:
        rows = find_by_texts(model, object_ids, using=database)
    except InvalidKey:
        return set()  # The model has a primary key of another type now.
    with savepoint(database):
        return {convert_key(model, pk) for pk in rows.values_list("pk", flat=True)}
