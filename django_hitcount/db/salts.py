"""
The random half of visitor keys: make a salt for each period, and erase it afterwards.

A period is the time between two rotations of the visitor key: a day or a month.
"""

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
"""As many as a SHA-256 hash has: more would not make keys harder to guess."""

SALT_DAYS = {"day": 3, "month": 63, "never": 63}
"""How many days a salt is kept after it was made, by rotation. These are its period, the next
period (in which its visitors are still recognised), and one more day for late hits. The salt of
"never" is kept for ever. Its number of days applies to older salts, made before the setting was
"never"."""

LOCK_MILLISECONDS = 100
"""How long the rewrite waits for the lock of the table. Other sessions wait behind it."""

PATIENCE_SECONDS = 2.0
"""How long to retry the rewrite. If it fails, the next rewrite erases these salts, too."""

logger = logging.getLogger("django_hitcount")


def salt_of(period: str) -> bytes:
    """Read the salt of a period, or make it. Costs one query, or three to make it."""
    rows = VisitorSalt.objects.using(hits_alias())
    row, _ = rows.get_or_create(period=period, defaults={"salt": secrets.token_bytes(SALT_BYTES)})
    return bytes(row.salt)


def prune_salts() -> int:
    """
    Delete old salts, also from the file of the table. Returns how many there were.

    Costs one query, or two on SQLite. On PostgreSQL, if there were any, also costs a transaction
    that locks the table for some milliseconds. InnoDB erases deleted rows from its file by itself.
    """
    using = hits_alias()
    rotation = conf.get_config().visitor_key_rotation
    before = timezone.now() - datetime.timedelta(days=SALT_DAYS[rotation])
    old = VisitorSalt.objects.using(using).filter(made_at__lt=before)
    if rotation == "never":
        old = old.exclude(period=rotation)
    if connections[using].vendor == "sqlite":
        # SQLite leaves deleted bytes in the file, but overwrites a value of the same length.
        old.update(salt=secrets.token_bytes(SALT_BYTES))
    deleted, _ = old.delete()
    if deleted and connections[using].vendor == "postgresql":
        _rewrite_table(using)
    return deleted


def _rewrite_table(using: str) -> None:
    """
    Write the table into a new file.

    PostgreSQL leaves deleted rows in the file: an UPDATE writes elsewhere, and VACUUM does not
    overwrite rows and seldom visits such a small table. In a test over 60 days, the file had 60
    salts, and 57 after VACUUM. VACUUM FULL does the same as CLUSTER, but not in a transaction, so
    its lock timeout would have to be reset afterwards.
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
            "Deleted salts can still be read in the file of %s. To erase them, run "
            "VACUUM FULL %s: %s",
            table,
            table,
            exc,
        )
