"""SQL of the limit per address, for sites without Redis and for as long as Redis is away."""

from __future__ import annotations

from django.db import models

from django_hitcount.counters.days import open_days
from django_hitcount.counters.hits import AddressHash
from django_hitcount.db import upserts
from django_hitcount.db.tables import CountedAddress
from django_hitcount.db.transactions import delete_in_batches, take_write_lock

Rows = models.QuerySet[CountedAddress, CountedAddress]


def read_hits(address: AddressHash, *, using: str) -> int | None:
    """Read how many hits of an address were counted; None if there are none. Costs a query."""
    take_write_lock(using)
    return _row(address, using).values_list("hits", flat=True).first()


def add_hit(address: AddressHash, known: int | None, limit: int, *, using: str) -> bool:
    """
    Count one more hit of an address. Returns False if other sessions have reached ``limit`` since.

    The caller opens the transaction, and has read ``known`` in it. Costs one statement, or two for
    the first hit. Waits for other sessions that count the same address on the same object.
    """
    row = _row(address, using)
    if known is not None:
        return bool(row.filter(hits__lt=limit).update(hits=models.F("hits") + 1))
    upserts.insert_or_add(CountedAddress, ("name", "hits"), [(_name(address), 1)], using)
    return row.values_list("hits", flat=True).get() <= limit


def _row(address: AddressHash, using: str) -> Rows:
    return CountedAddress.objects.using(using).filter(name=_name(address))


def _name(address: AddressHash) -> str:
    return f"{address.interval.last_day.isoformat()}:{address.hash.hex()}"


def prune_addresses(*, using: str) -> int:
    """
    Delete rows whose interval was over before yesterday. Returns the number of rows.

    Costs a read, and per 500 rows a read and a transaction of one statement.

    Raises OperationalError if a batch meets locks for longer than 5 seconds.
    """
    first_open_day, _ = open_days()
    rows = CountedAddress.objects.using(using)
    old = rows.filter(name__lt=first_open_day.isoformat())
    return delete_in_batches(old.order_by("name"), using=using)
