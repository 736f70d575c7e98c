"""
SQL on visitors, for sites without Redis and for as long as Redis is away.

A row says that a visitor has been seen by a counter on a day; an admission, that a visitor is
not to be counted again for a while. Each is written once, whoever else tries to. How many hits of
an address were counted is asked of counted_addresses.py.
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
    """Hits of an address were counted while one of it was judged, so that it does not count."""

    def __init__(self, address: AddressHash) -> None:
        super().__init__(address)
        self.address = address


def refuse_repeats(
    hits: Sequence[NewHits], beyond: Collection[AddressHash] = (), *, using: str
) -> list[NewHits]:
    """
    The same hits in their order, those of visitors who have been counted already refused, and
    those of addresses that have had their limit or are ``beyond`` it.

    The caller opens the transaction that writes the hits, so that a visitor is remembered if
    and only if the hit is. Costs one statement for each hit of a counter with ``visitors`` or
    the rule "daily", up to six more with a rule of so many seconds, and one to three with a limit
    per address, in lock order.

    Raises LimitReached: roll back, and judge anew with that address beyond its limit.
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
        # Asked first: nothing is kept of visitors who are made up beyond the limit.
        if address in beyond or (known or 0) >= limit:
            return hit._replace(refusal=ADDRESS_LIMIT)
    if hit.visitor.of_day and _is_repeat(hit, hit.visitor, using):
        return hit._replace(refusal=REPEAT)
    if limit and address and not counted_addresses.add_hit(address, known, limit, using=using):
        raise LimitReached(address)
    return hit


def _is_repeat(hit: NewHits, visitor: VisitorHashes, using: str) -> bool:
    options = conf.get_config().options_of(hit.key.counter)
    is_repeat = False
    if isinstance(options.repeat, int):
        is_repeat = not _is_admitted(visitor.recent, options.repeat, using)
    if options.keeps_seen_visitors:
        is_new = _insert(hit, visitor, using)
        is_repeat = is_repeat or (options.repeat == "daily" and not is_new)
    return is_repeat


def _is_admitted(recent: Iterable[bytes], seconds: int, using: str) -> bool:
    """Whether a visitor has not been counted for so long, under the keys of then and now."""
    name, *earlier = [f"repeat:{mark.hex()}" for mark in recent]
    if earlier:
        take_write_lock(using)
    shortest = seconds * 1000
    lasting, other = jitter.lengthen(shortest), jitter.lengthen(shortest)
    return all(admissions.is_due(old, using=using) for old in earlier) and (
        admissions.admit(name, lasting * 1000, using=using, backdated=(other - shortest) * 1000)
    )


def _insert(hit: NewHits, visitor: VisitorHashes, using: str) -> bool:
    """Remember the visitor of a hit; False if somebody did before."""
    day = connections[using].ops.adapt_datefield_value(hit.day)
    values = [make_primary_key(), *hit.key, day, visitor.key_id, (visitor.of_day or b"").hex()]
    return upserts.insert_or_ignore(SeenVisitor, COLUMNS, values, using)


def make_primary_key() -> int:
    """A primary key that does not tell which rows were written together."""
    return 1 + secrets.randbelow(2**62)


def read_oldest(days: Sequence[datetime.date], limit: int, *, using: str) -> dict[int, NewHits]:
    """
    Visitors of ``days`` by row, each as the mark on no hits at all. Costs a query.

    Those of counters that no longer ask for them are left to the end of their day.
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
    """Forget rows that somebody else has been told of. Costs a query."""
    SeenVisitor.objects.using(using).filter(pk__in=[*pks]).delete()
