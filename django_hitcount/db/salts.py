"""The random half of visitor keys: made for a period, deleted once that is over, and erased."""

from __future__ import annotations

import datetime
import logging
import secrets

from django.db import connections
from django.utils import timezone

from django_hitcount import conf
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.tables import VisitorSalt
from django_hitcount.db.transactions import DATABASE_ERRORS, in_transaction

SALT_BYTES = 32

SALT_DAYS = {"day": 3, "month": 63, "never": 63}
"""How long a salt is kept after it was made, by rotation: for its period, for the next one, in
which visitors of this one are still known, and a day more for late hits. That of "never" is
kept for ever; there the days are those of other salts, from before the setting was changed."""

LOCK_MILLISECONDS = 100
"""How long the rewriting of the table may wait for it, and keep those that come after waiting."""

PATIENCE_SECONDS = 2.0
"""How long that is tried again for."""

logger = logging.getLogger("django_hitcount")


def salt_of(period: str) -> bytes:
    """The salt of a period, made if there is none. Costs a query, three if it is the first."""
    rows = VisitorSalt.objects.using(hits_alias())
    row, _ = rows.get_or_create(period=period, defaults={"salt": secrets.token_bytes(SALT_BYTES)})
    return bytes(row.salt)


def prune_salts() -> int:
    """
    Delete the salts of periods that are over, also from the file of the table; returns how many.

    The file of InnoDB loses them by itself. Costs a query, on SQLite two; and if there were
    any, on PostgreSQL, a short transaction that locks the table for some milliseconds.
    """
    using = hits_alias()
    rotation = conf.get_config().visitor_key_rotation
    before = timezone.now() - datetime.timedelta(days=SALT_DAYS[rotation])
    old = VisitorSalt.objects.using(using).filter(made_at__lt=before)
    if rotation == "never":
        old = old.exclude(period=rotation)
    if connections[using].vendor == "sqlite":
        # It overwrites in place what has the same length, and leaves what is deleted.
        old.update(salt=secrets.token_bytes(SALT_BYTES))
    deleted, _ = old.delete()
    if deleted and connections[using].vendor == "postgresql":
        _rewrite_table(using)
    return deleted


def _rewrite_table(using: str) -> None:
    """
    Give the table a new file.

    PostgreSQL leaves what is deleted in the old one: an UPDATE writes elsewhere, VACUUM zeroes
    nothing and hardly ever comes to a table as small as this. After 60 days, 60 salts were
    in it, and 57 after VACUUM. VACUUM FULL does the same as CLUSTER, but in no transaction, so
    that its lock timeout would have to be taken back.
    """
    connection = connections[using]
    table = VisitorSalt._meta.db_table

    def rewrite() -> None:
        with connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table)
            key = next(name for name, constraint in found.items() if constraint["primary_key"])
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
            quote = connection.ops.quote_name
            cursor.execute(f"CLUSTER {quote(table)} USING {quote(key)}")

    try:
        in_transaction(rewrite, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=True)
    except DATABASE_ERRORS as exc:
        logger.warning(
            "Salts that were deleted can still be read in the file of %s, until VACUUM FULL %s: %s",
            table,
            table,
            exc,
        )
