"""
SQL on visitors, for sites without Redis and for as long as Redis is away.

A row of SeenVisitor says that a counter has seen a visitor on a day. An admission says that a
visitor does not count again for a while. Each is written once, by whichever session comes first.
How many hits of an address were counted is in counted_addresses.py.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Collection, Iterable, Sequence

from django.db import connections

from django_hitcount import conf
from django_hitcount.counters import jitter
from django_hitcount.counters.hits import AddressHash, NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.outcomes import ADDRESS_LIMIT, REPEAT
from django_hitcount.db import admissions, counted_addresses, upserts
from django_hitcount.db.tables import SeenVisitor
from django_hitcount.db.transactions import take_write_lock

COLUMNS = ("id", "content_type_id", "object_id", "counter", "day", "visitor_key", "visitor")


class LimitReached(Exception):
    """Another session has counted the last hits of an address while this one checked its limit."""

    def __init__(self, address: AddressHash) -> None:
        super().__init__(address)
        self.address = address


def refuse_repeats(
    hits: Sequence[NewHits], beyond: Collection[AddressHash] = (), *, using: str
) -> list[NewHits]:
    """
    Remember the visitors of hits; refuse the hits of visitors and addresses that cannot count.

    Returns the same hits in the same order, with a refusal on hits of visitors who have been
    counted already, and of addresses that have reached their limit or are ``beyond`` it.

    The caller opens the transaction that writes the hits, so that a visitor is remembered if
    and only if the hit is. Costs one statement for each hit of a counter with ``visitors`` or
    the rule "daily", up to six more with a rule of seconds, and one to three with a limit per
    address, in lock order.

    Raises LimitReached: roll back, and try again with that address ``beyond`` its limit.
    """
    in_lock_order = sorted(range(len(hits)), key=lambda place: hits[place].key)
    found = {place: _refuse_repeat(hits[place], beyond, using) for place in in_lock_order}
    return [found[place] for place in range(len(hits))]


def _refuse_repeat(hit: NewHits, beyond: Collection[AddressHash], using: str) -> NewHits:
    if hit.refusal or not hit.visitor:
        return hit
    limit = conf.get_config().options_of(hit.key.counter).per_address
    address = hit.visitor.address
    known = None
    if limit and address:
        known = counted_addresses.read_hits(address, using=using)
        # Checked first: beyond the limit, invented visitors must not fill the table.
        if address in beyond or (known or 0) >= limit:
            return hit._replace(refusal=ADDRESS_LIMIT)
    if hit.visitor.of_day and not _remember_visitor(hit, hit.visitor, using):
        return hit._replace(refusal=REPEAT)
    if limit and address and not counted_addresses.add_hit(address, known, limit, using=using):
        raise LimitReached(address)
    return hit


def _remember_visitor(hit: NewHits, visitor: VisitorHashes, using: str) -> bool:
    """Remember the visitor of a hit; False if the rule of the counter makes it a repeat."""
    options = conf.get_config().options_of(hit.key.counter)
    counts = True
    if isinstance(options.repeat, int):
        counts = _admit(visitor.recent, options.repeat, using)
    if options.keeps_seen_visitors:
        is_new = _insert(hit, visitor, using)
        counts = counts and (options.repeat != "daily" or is_new)
    return counts


def _admit(recent: Iterable[bytes], seconds: int, using: str) -> bool:
    """Admit a visitor, unless admitted less than ``seconds`` ago under one of the keys."""
    name, *earlier = [f"repeat:{visitor.hex()}" for visitor in recent]
    if earlier:
        take_write_lock(using)
    shortest = seconds * 1000
    lasting, other = jitter.lengthen(shortest), jitter.lengthen(shortest)
    return all(admissions.is_due(old, using=using) for old in earlier) and (
        admissions.admit(name, lasting * 1000, using=using, backdated=(other - shortest) * 1000)
    )


def _insert(hit: NewHits, visitor: VisitorHashes, using: str) -> bool:
    """Insert the visitor of a hit; False if the row is there already."""
    day = connections[using].ops.adapt_datefield_value(hit.day)
    values = [make_primary_key(), *hit.key, day, visitor.key_id, (visitor.of_day or b"").hex()]
    return upserts.insert_or_ignore(SeenVisitor, COLUMNS, values, using)


def make_primary_key() -> int:
    """Make a random primary key, so that keys do not show which rows were written together."""
    return 1 + secrets.randbelow(2**62)


def read_oldest(days: Sequence[datetime.date], limit: int, *, using: str) -> dict[int, NewHits]:
    """
    Read visitors of ``days`` by row, each as the visitor of zero hits. Costs a query.

    Rows of counters that no longer keep visitors stay until their day is closed.
    """
    counters = [
        name for name, options in conf.get_config().counters.items() if options.keeps_seen_visitors
    ]
    rows = SeenVisitor.objects.using(using).filter(day__in=days, counter__in=counters)
    return {
        row.pk: NewHits(
            CounterKey(row.content_type_id, row.object_id, row.counter),
            row.day,
            0,
            visitor=VisitorHashes(row.visitor_key, bytes.fromhex(row.visitor)),
        )
        for row in rows.order_by("pk")[:limit]
    }


def drop_rows(pks: Iterable[int], *, using: str) -> None:
    """Drop rows that are in Redis now. Costs a query."""
    SeenVisitor.objects.using(using).filter(pk__in=[*pks]).delete()
