"""Take hits in: the one path of every hit."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from asgiref.sync import sync_to_async
from django.db import router
from django.db.models import Model
from django.http import HttpRequest

from django_hitcount import totals
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.base import Glimpse
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters import (
    CounterKey,
    Hits,
    counter_key,
    day_of,
    hits_alias,
    valid_amount,
)
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.refusals import NO_REQUEST, UNAVAILABLE, refusal_of
from django_hitcount.transactions import DATABASE_ERRORS, when_committed

logger = logging.getLogger("django_hitcount")

_ON_REQUEST = "_hitcount_hits"


@dataclass(frozen=True, slots=True)
class Hit:
    """What became of a hit."""

    counted: bool
    """True also if the hit waits for the COMMIT of the transaction it was recorded in."""

    refusal: str | None
    """Why it was not counted: one of the names in refusals."""

    total: int | None
    """
    The total of the counter with this hit; None if it cannot be read now.

    In a transaction, other hits that wait for the same COMMIT are not in it.
    """


def record_hit(
    obj: Model,
    request: HttpRequest | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
    amount: int = 1,
    at: datetime.date | datetime.datetime | None = None,
) -> Hit:
    """
    Count a hit on ``obj``; never fails or waits because a server is away.

    Within a transaction of the object's or the counts' database it waits for the COMMIT,
    and a rollback counts nothing.

    Args:
        request: what asks for the page; not counted unless it is a GET.
        counter: one of HITCOUNT["COUNTERS"].
        amount: how many hits; negative to take some back.
        at: the day of the hit, or a moment of it; now if None.

    With Redis, costs one round trip (in a transaction one before and one after COMMIT),
    and one more with one query if Redis does not know the total. Without: three queries
    and BEGIN and COMMIT.

    Raises InvalidHit if the arguments make no sense.
    """
    return record_hits([obj], request, counter=counter, amount=amount, at=at)[0]


def record_hits(
    objs: Iterable[Model],
    request: HttpRequest | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
    amount: int = 1,
    at: datetime.date | datetime.datetime | None = None,
) -> list[Hit]:
    """
    Count a hit on each of ``objs`` at once; returns a Hit for each, in order.

    See record_hit(). With Redis, costs one round trip however many objects there are;
    without, three queries per thousand objects.
    """
    objs = list(objs)
    valid_amount(amount)
    day = day_of(at)
    try:
        hits = [Hits(counter_key(obj, counter), day, amount) for obj in objs]
    except DATABASE_ERRORS as exc:
        logger.error("%d hits are not counted: %s", len(objs), exc)
        return [Hit(False, UNAVAILABLE, None)] * len(objs)
    refusal = refusal_of(request)
    if refusal:
        results = _not_counted(hits, refusal)
    else:
        results = _record(hits, {db for obj in objs for db in _databases_of(obj)})
    if request is not None:
        _remembered(request).update(zip((hit.key for hit in hits), results, strict=True))
    return results


def record_page_hit(
    request: HttpRequest | None, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> Hit:
    """
    Count a view of the page that ``request`` asks for, once however often it is called.

    Without a request nothing is counted. Costs nothing from the second call on, and what
    record_hit() costs at the first.
    """
    if request is None:
        return Hit(False, NO_REQUEST, totals.total_or_none(obj, counter))
    try:
        earlier = _remembered(request).get(counter_key(obj, counter))
    except DATABASE_ERRORS:
        earlier = None  # record_hit() will find out, and say so.
    return earlier or record_hit(obj, request, counter=counter)


def _remembered(request: HttpRequest) -> dict[CounterKey, Hit]:
    """The last hit on each counter that this request brought."""
    hits: dict[CounterKey, Hit] = request.__dict__.setdefault(_ON_REQUEST, {})
    return hits


def _databases_of(obj: Model) -> set[str]:
    """Where a transaction may roll back what the page does with ``obj``."""
    return {obj._state.db or hits_alias(), router.db_for_write(type(obj), instance=obj)}


def _record(hits: Sequence[Hits], databases: set[str]) -> list[Hit]:
    now: list[Hit] = []
    work = partial(_record_now, hits, now)
    if when_committed(work, databases={*databases, hits_alias()}):
        return now
    before = totals.totals_or_none([hit.key for hit in hits])
    return [_counted(before.get(hit.key), plus=hit.amount) for hit in hits]


def _record_now(hits: Sequence[Hits], results: list[Hit]) -> None:
    """Append a Hit for each of ``hits`` to ``results``."""
    try:
        glimpse = get_buffer().record(hits)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.error("%d hits are not counted: %s", len(hits), exc)
        results += _not_counted(hits, UNAVAILABLE)
        return
    results += [_counted(total) for total in _totals_after(hits, glimpse)]


def _totals_after(hits: Sequence[Hits], glimpse: Glimpse) -> list[int | None]:
    after = totals.totals_or_none([hit.key for hit in hits], glimpse)
    return [after.get(hit.key) for hit in hits]


def _not_counted(hits: Sequence[Hits], refusal: str) -> list[Hit]:
    known = totals.totals_or_none([hit.key for hit in hits])
    return [Hit(False, refusal, known.get(hit.key)) for hit in hits]


def _counted(total: int | None, *, plus: int = 0) -> Hit:
    return Hit(True, None, None if total is None else total + plus)


arecord_hit = sync_to_async(record_hit)
"""See record_hit()."""

arecord_hits = sync_to_async(record_hits)
"""See record_hits()."""
