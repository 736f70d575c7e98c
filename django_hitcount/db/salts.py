"""
The random half of visitor keys: make a salt for each period, and erase it afterwards.

A period is the time between two rotations of the visitor key: a day or a month.
"""

from __future__ import annotations

import datetime
import logging
import secrets

from django.db import connections, models

from django_hitcount import conf
from django_hitcount.counters.days import day_of
from django_hitcount.db.sql import read_clock
from django_hitcount.db.tables import VisitorSalt, hits_alias
from django_hitcount.db.transactions import (
    DATABASE_ERRORS,
    in_transaction,
    is_in_transaction,
    limit_waits,
)

SALT_BYTES = 32
"""As many as a SHA-256 hash has: more would not make keys harder to guess."""

LOCK_WAIT_SECONDS = 0.1
"""How long a statement waits for locks. Other sessions wait behind the rewrite of the table."""

PATIENCE_SECONDS = 2.0
"""How long compact_hits retries. If the rewrite fails, the next rewrite erases these salts, too."""

logger = logging.getLogger("django_hitcount")


def salt_of(period: str) -> bytes:
    """
    Read the salt of a period. If there is none, delete old salts, and make it.

    So nobody has to run anything for salts to be deleted: the first visitor of a day makes the salt
    of that day, and deletes those of three days ago. Within a transaction, leaves that to the next.

    Salts are made and deleted by the clock of the database. A process whose clock is wrong makes
    salts of other periods, but they go as all others do, and it deletes none that are in use.

    Costs one query. To make a salt, costs five more or so, and what prune_salts() costs.
    """
    using = hits_alias()
    rows = VisitorSalt.objects.using(using)
    found = rows.filter(period=period).first()
    if found is None:
        if not is_in_transaction(using):
            _prune_on_page()
        made = {"salt": secrets.token_bytes(SALT_BYTES), "made_at": read_clock()}
        found, _ = rows.get_or_create(period=period, defaults=made)
    return bytes(found.salt)


def _prune_on_page() -> None:
    try:
        prune_salts(patience_seconds=0)
    except DATABASE_ERRORS as exc:
        logger.warning("Old visitor salts are left to compact_hits, or the next salt: %s", exc)


def prune_salts(*, patience_seconds: float = PATIENCE_SECONDS) -> int:
    """
    Delete old salts, also from the file of the table. Returns how many there were.

    Costs a query and a transaction of one statement, or two on SQLite. On PostgreSQL, if there were
    any, also costs a transaction that locks the table for some milliseconds. InnoDB erases deleted
    rows from its file by itself. Waits for locks for ``patience_seconds``, or a bit longer.
    """
    using = hits_alias()
    old = _old_salts(using)

    def delete() -> int:
        with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
            if connections[using].vendor == "sqlite":
                # It leaves deleted bytes in the file, but overwrites a value of the same length.
                old.update(salt=secrets.token_bytes(SALT_BYTES))
            return old._raw_delete(using)

    deleted = in_transaction(
        delete, using=using, patience_seconds=patience_seconds, repeatable=True
    )
    if deleted and connections[using].vendor == "postgresql":
        _rewrite_table(using, patience_seconds)
    return deleted


def _old_salts(using: str) -> models.QuerySet[VisitorSalt, VisitorSalt]:
    """
    Return the salts that nobody needs.

    The salt of a day is kept on that day and on the next one, on which its visitors are still
    recognised, and one more day for late hits. That of a month is kept in that month and the next,
    and that of "never" for ever. One from the future was made when the clock of the database was
    ahead. It is left for a day: a clock that knows no time zones goes back by an hour in autumn.
    """
    rotation = conf.get_config().visitor_key_rotation
    now, a_day = read_clock(), datetime.timedelta(days=1)
    first_day = day_of(now) - 2 * a_day
    if rotation != "day":
        first_day = (day_of(now).replace(day=1) - a_day).replace(day=1)
    midnight = datetime.datetime.combine(first_day, datetime.time(), now.tzinfo)
    # A page asks for the key of the next period a minute before it begins.
    kept = models.Q(made_at__range=(midnight - datetime.timedelta(hours=1), now + a_day))
    if rotation == "never":
        kept |= models.Q(period=rotation)
    return VisitorSalt.objects.using(using).exclude(kept)


def _rewrite_table(using: str, patience_seconds: float) -> None:
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
        limited = limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True)
        with limited, connection.cursor() as cursor:
            found = connection.introspection.get_constraints(cursor, table)
            key = next(name for name, constraint in found.items() if constraint["primary_key"])
            quote = connection.ops.quote_name
            cursor.execute(f"CLUSTER {quote(table)} USING {quote(key)}")

    try:
        in_transaction(rewrite, using=using, patience_seconds=patience_seconds, repeatable=True)
    except DATABASE_ERRORS as exc:
        logger.warning(
            "Deleted salts can still be read in the file of %s. To erase them, run "
            "VACUUM FULL %s: %s",
            table,
            table,
            exc,
        )
