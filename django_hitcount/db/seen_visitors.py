"""
SQL on visitors: find repeats and limit addresses, without Redis and while Redis is away.

A row of SeenVisitor says that a visitor came to a counter on a day. A row of Admission says that a
visitor does not count again for some seconds. The first session that inserts a row wins. A row of
CountedAddress has the number of hits of an address.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable, Sequence

from django.db import connections, models

from django_hitcount import conf
from django_hitcount.counters.days import lengthen, open_days
from django_hitcount.counters.hits import ADDRESS_LIMIT, REPEAT, NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import admissions, sql
from django_hitcount.db.tables import CountedAddress, SeenVisitor, hits_alias
from django_hitcount.db.transactions import take_write_lock

AddressRows = models.QuerySet[CountedAddress, CountedAddress]

COLUMNS = ("id", "content_type_id", "object_id", "counter", "day", "visitor_key", "visitor")


class LimitReached(Exception):
    """After this transaction checked the limit of an address, another one has used it up."""


def refuse_repeats(hits: Sequence[NewHits]) -> list[NewHits]:
    """
    Refuse repeats and the hits of addresses over their limit. Remember the visitors of the others.

    Returns the same hits in the same order, the refused ones with a refusal.

    The caller opens the transaction and writes the hits in it. Visitor and hit are written together
    or not at all. Handles the hits in lock order. Statements per hit:

    - 1 with ``visitors`` or the rule "daily";
    - up to 6 more with ``repeat`` in seconds;
    - 1 to 3 more with a limit per address, and 1 that locks SQLite.

    Raises LimitReached. The caller must roll back and call again.
    """
    in_lock_order = sorted(range(len(hits)), key=lambda place: hits[place].key)
    found = {place: _refuse_repeat(hits[place]) for place in in_lock_order}
    return [found[place] for place in range(len(hits))]


def _refuse_repeat(hit: NewHits) -> NewHits:
    if hit.refusal or not hit.visitor:
        return hit
    limit = conf.get_config().options_of(hit.key.counter).per_address
    name = hit.visitor.address.name if limit and hit.visitor.address else None
    known = _read_hits(name) if name else None
    # Check the limit first. Otherwise a client that invents visitors could fill the table.
    if limit and (known or 0) >= limit:
        return _refuse(hit, ADDRESS_LIMIT)
    if hit.visitor.of_day and not _remember_visitor(hit, hit.visitor):
        return _refuse(hit, REPEAT)
    if limit and name and not _add_hit(name, known, limit):
        raise LimitReached
    return hit


def _refuse(hit: NewHits, reason: str) -> NewHits:
    """Refuse a hit. One whose refusal does not count is a refused hit with the amount 0."""
    return hit._replace(refusal=reason, amount=hit.amount if hit.counts_refusal else 0)


def _read_hits(name: str) -> int | None:
    """Read how many hits of an address were counted; None if there are none. Costs a query."""
    take_write_lock(hits_alias())
    return _row_of(name).values_list("hits", flat=True).first()


def _add_hit(name: str, known: int | None, limit: int) -> bool:
    """
    Count one more hit of an address. Returns False if other transactions have reached ``limit``.

    The caller has read ``known`` in the same transaction. Costs one statement, or two for the first
    hit. Waits for other sessions that count the same address on the same object.
    """
    if known is None:
        return count_by_name(name, 1) <= limit
    return bool(_row_of(name).filter(hits__lt=limit).update(hits=models.F("hits") + 1))


def count_by_name(name: str, amount: int) -> int:
    """
    Add to the hits under a name, without a limit, and return the sum. Costs two statements.

    The sum may include hits that other sessions add meanwhile.
    """
    sql.insert_or_add(CountedAddress, ("name", "hits"), [(name, amount)])
    return _row_of(name).values_list("hits", flat=True).get()


def _row_of(name: str) -> AddressRows:
    return CountedAddress.objects.using(hits_alias()).filter(name=name)


def _remember_visitor(hit: NewHits, visitor: VisitorHashes) -> bool:
    """Remember the visitor of a hit. Return False if the hit is a repeat."""
    options = conf.get_config().options_of(hit.key.counter)
    counts = True
    if isinstance(options.repeat, int):
        counts = _admit(visitor.recent, options.repeat)
    if options.keeps_seen_visitors:
        is_new = _insert(hit, visitor)
        counts = counts and (options.repeat != "daily" or is_new)
    return counts


def _admit(recent: Iterable[bytes], seconds: int) -> bool:
    """
    Return whether no hit of the visitor was counted in the last ``seconds``.

    If so, an interval begins, in which further hits are repeats. ``recent`` has the visitor's
    hashes: first under the current key, then under keys that an earlier hit may be under.
    """
    name, *earlier = [f"repeat:{visitor.hex()}" for visitor in recent]
    if earlier:
        take_write_lock(hits_alias())
    shortest = seconds * 1000
    lasting, other = lengthen(shortest), lengthen(shortest)
    return all(admissions.is_due(old) for old in earlier) and (
        admissions.admit(name, lasting * 1000, backdated=(other - shortest) * 1000)
    )


def _insert(hit: NewHits, visitor: VisitorHashes) -> bool:
    """Insert the visitor of a hit. Return False if the row exists already."""
    day = connections[hits_alias()].ops.adapt_datefield_value(hit.day)
    # The primary key is random, so that keys do not show which rows were written together.
    pk = 1 + secrets.randbelow(2**62)
    values = [pk, *hit.key, day, visitor.key_id, (visitor.of_day or b"").hex()]
    return sql.insert_or_ignore(SeenVisitor, COLUMNS, values, hits_alias())


def read_oldest(days: Sequence[datetime.date], limit: int) -> dict[int, NewHits]:
    """
    Read up to ``limit`` visitors of ``days``, to deliver them to Redis. Costs a query.

    Returns a dict from the row's primary key to a NewHits with amount 0 and that visitor. Leaves
    out the rows of counters that no longer keep visitors. They stay until their day is closed.
    """
    counters = [
        name for name, options in conf.get_config().counters.items() if options.keeps_seen_visitors
    ]
    rows = SeenVisitor.objects.using(hits_alias()).filter(day__in=days, counter__in=counters)
    return {
        row.pk: NewHits(
            CounterKey(row.content_type_id, row.object_id, row.counter),
            row.day,
            0,
            visitor=VisitorHashes(row.visitor_key, bytes.fromhex(row.visitor)),
        )
        for row in rows.order_by("pk")[:limit]
    }


def drop_rows(pks: Iterable[int]) -> None:
    """Delete rows whose visitors Redis has now. Costs a query."""
    SeenVisitor.objects.using(hits_alias()).filter(pk__in=[*pks]).delete()


def prune_addresses() -> int:
    """
    Delete rows whose interval was over before yesterday. Returns the number of rows.

    Costs a read, and per 500 rows a read and a transaction of one statement.

    Raises OperationalError if a piece meets locks for longer than 5 seconds.
    """
    first_open_day, _ = open_days()
    rows = CountedAddress.objects.using(hits_alias())
    old = rows.filter(name__lt=first_open_day.isoformat())
    return sql.delete_in_pieces(old.order_by("name"))
