"""Take hits in: the one path of every hit."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from asgiref.sync import sync_to_async
from django.db import IntegrityError, router
from django.db.models import Model
from django.http import HttpRequest

from django_hitcount import totals
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.days import day_of
from django_hitcount.counters.fresh_totals import drop_total
from django_hitcount.counters.hits import NewHits, valid_amount
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.objects import is_unsaved
from django_hitcount.db.commits import Waiting, when_committed
from django_hitcount.db.content_types import forget_content_types
from django_hitcount.db.counted_objects import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import OpenTransactions
from django_hitcount.db.transactions import DATABASE_ERRORS, require_autocommit
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.failures import is_server_away
from django_hitcount.outages.page_reads import page_reads
from django_hitcount.outages.waits import OnPage, add_wait, keep_on_page
from django_hitcount.refusals import (
    NO_REQUEST,
    UNAVAILABLE,
    UNSAVED,
    HitContext,
    log_refused,
    refusal_of,
)
from django_hitcount.visitors import hashing
from django_hitcount.visitors.origins import RequestOrigin, current_address_interval, read_origin

logger = logging.getLogger("django_hitcount")

_HITS_ATTRIBUTE = "_hitcount_hits"

Refuse = Callable[[HitContext], bool]
"""Says True to refuse a hit."""


@dataclass(frozen=True, slots=True)
class Hit:
    """What became of a hit."""

    counted: bool
    """
    True also if the hit waits for the COMMIT of the transaction it was recorded in: only
    then is it known whether it is a repeat, and a rollback takes it back.
    """

    refusal: str | None
    """Why it was not counted: the name of one of the refusals."""

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
    refuse: Refuse | None = None,
) -> Hit:
    """
    Count a hit on ``obj``; never fails or waits because a server is away.

    Within a transaction of the object's or the counts' database it waits for the COMMIT,
    of both if there are two, and a rollback counts nothing. Without autocommit in the
    counts' database it is refused as "unavailable".

    Args:
        request: what asks for the page. HITCOUNT["REFUSALS"] and the counter's ``repeat``
            rule decide whether it counts; without a request, it does.
        counter: one of HITCOUNT["COUNTERS"].
        amount: how many hits; negative to take some back, which no visitor does.
        at: the day of the hit, or a moment of it; now if None.
        refuse: asked after the refusals, about this hit alone.

    With Redis, costs one round trip (in a transaction one before and one after COMMIT),
    and one more with one query if Redis does not know the total. Without: three queries
    and BEGIN and COMMIT, and one to eleven more where visitors are told apart. A process's
    first hit of a visitor on a day costs a query for the visitor key.

    Raises InvalidHit if the arguments make no sense.
    """
    return record_hits([obj], request, counter=counter, amount=amount, at=at, refuse=refuse)[0]


def record_hits(
    objs: Iterable[Model],
    request: HttpRequest | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
    amount: int = 1,
    at: datetime.date | datetime.datetime | None = None,
    refuse: Refuse | None = None,
) -> list[Hit]:
    """
    Count a hit on each of ``objs`` at once; returns a Hit for each, in order.

    See record_hit(). With Redis, costs one round trip however many objects there are;
    without, three queries per thousand objects, and one to eleven for each of them where
    visitors are told apart.
    """
    objs = list(objs)
    valid_amount(amount)
    day = day_of(at)
    try:
        keys = [counter_key(obj, counter) for obj in objs]
    except DATABASE_ERRORS as exc:
        logger.error("%d hits are not counted: %s", len(objs), exc)
        return [Hit(False, UNAVAILABLE, None)] * len(objs)
    if request is None:
        hits, origin = [NewHits(key, day, amount) for key in keys], None
    else:
        transactions = OpenTransactions()
        contexts = [HitContext(request, obj, counter) for obj in objs]
        hits = [
            NewHits(key, day, amount, refusal_of(context, refuse, transactions=transactions))
            for key, context in zip(keys, contexts, strict=True)
        ]
        log_refused((hit.refusal for hit in hits), counter, request)
        origin = _read_origin(hits, request, counter, transactions)
    for obj in objs:
        drop_total(obj, counter)
    databases = {db for obj in objs for db in _databases_of(obj)}
    with OnPage(request):
        results, waiting = _record(hits, origin, databases)
    if request is not None:
        _remember(request, zip(keys, results, strict=True), waiting)
    return results


def _read_origin(
    hits: Sequence[NewHits], request: HttpRequest, counter: str, transactions: OpenTransactions
) -> RequestOrigin | None:
    """Read where the request comes from, if the counter needs it and a hit may still count."""
    options = get_config().counters[counter]
    if not options.identifies_visitors and options.per_address is None:
        return None
    if all(hit.refusal or hit.amount < 0 for hit in hits):
        return None
    return read_origin(request, options, transactions=transactions)


def record_page_hit(
    request: HttpRequest | None, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> Hit:
    """
    Count a view of the page that ``request`` asks for, once however often it is called.

    Without a request nothing is counted, nor is an object that is not saved, which has no
    total: a preview. Costs nothing from the second call on, and what record_hit() costs at
    the first.
    """
    if is_unsaved(obj):
        log_refused([UNSAVED], counter, request)
        return Hit(False, UNSAVED, None)
    if request is None:
        log_refused([NO_REQUEST], counter)
        return Hit(False, NO_REQUEST, totals.total_or_none(obj, counter=counter))
    try:
        earlier = _remembered(request, counter_key(obj, counter))
    except DATABASE_ERRORS:
        earlier = None  # record_hit() will find out, and say so.
    return earlier or record_hit(obj, request, counter=counter)


def _remember(
    request: HttpRequest, hits: Iterable[tuple[CounterKey, Hit]], waiting: Waiting | None
) -> None:
    """Keep the last hit on each counter that this request brought, and what it waits for."""
    known = request.__dict__.setdefault(_HITS_ATTRIBUTE, {})
    known.update({key: (hit, waiting) for key, hit in hits})


def _remembered(request: HttpRequest, key: CounterKey) -> Hit | None:
    """The hit that this request brought; none if it was rolled back."""
    hit: Hit
    waiting: Waiting | None
    hit, waiting = request.__dict__.get(_HITS_ATTRIBUTE, {}).get(key, (None, None))
    return None if waiting and waiting.is_dropped else hit


def _databases_of(obj: Model) -> set[str]:
    """Where a transaction may roll back what the page does with ``obj``."""
    return {obj._state.db or hits_alias(), router.db_for_write(type(obj), instance=obj)}


def _record(
    hits: Sequence[NewHits], origin: RequestOrigin | None, databases: set[str]
) -> tuple[list[Hit], Waiting | None]:
    """Hits, and what they wait for."""
    using = hits_alias()
    try:
        require_autocommit(using)
    except DATABASE_ERRORS as exc:
        return _unavailable(hits, exc), None
    now: list[Hit] = []
    work = partial(_record_now, hits, origin, now)
    waiting = when_committed(keep_on_page(work), databases={*databases, using})
    if waiting is None:
        return now, None
    before = totals.totals_or_none([hit.key for hit in hits])
    return [_result(hit.refusal, before.get(hit.key), plus=hit.amount) for hit in hits], waiting


def _record_now(hits: Sequence[NewHits], origin: RequestOrigin | None, results: list[Hit]) -> None:
    """Append a Hit for each of ``hits`` to ``results``."""
    if origin:
        hits = _with_visitors(hits, origin)
    keys = [hit.key for hit in hits]
    began_at = time.monotonic()
    try:
        glimpse = get_buffer().record(hits)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.error("%d hits are not counted: %s", len(hits), exc)
        if is_server_away(exc):  # A page that has waited for the tables does not read them, too.
            add_wait(page_reads().server, time.monotonic() - began_at)
        if isinstance(exc, IntegrityError):
            forget_content_types()  # One was deleted elsewhere; the next hit finds the new one.
        known = totals.totals_or_none(keys)
        results += [Hit(False, hit.refusal or UNAVAILABLE, known.get(hit.key)) for hit in hits]
        return
    known = totals.totals_or_none(keys, glimpse)
    refusals = _refusals(hits, glimpse.refused)
    for key, refusal in glimpse.refused:
        log_refused([refusal], key.counter)
    results += [
        _result(refusal, known.get(key)) for key, refusal in zip(keys, refusals, strict=True)
    ]


def _unavailable(hits: Sequence[NewHits], error: Exception) -> list[Hit]:
    """Hits that are lost."""
    logger.error("%d hits are not counted: %s", len(hits), error)
    known = totals.totals_or_none([hit.key for hit in hits])
    return [Hit(False, hit.refusal or UNAVAILABLE, known.get(hit.key)) for hit in hits]


def _refusals(
    hits: Sequence[NewHits], refused: Sequence[tuple[CounterKey, str]]
) -> list[str | None]:
    """Why each hit is refused; of several hits on one counter, the first is the one that counts."""
    refusals = [hit.refusal for hit in hits]
    for key, refusal in refused:
        place = max(n for n, hit in enumerate(hits) if hit.key == key and not refusals[n])
        refusals[place] = refusal
    return refusals


def _with_visitors(hits: Sequence[NewHits], origin: RequestOrigin) -> Sequence[NewHits]:
    """Add the hashed visitor to each hit, unless the visitor keys cannot be read now."""
    options, day = get_config().counters[hits[0].key.counter], hits[0].day
    seconds = options.repeat if isinstance(options.repeat, int) else None
    interval = current_address_interval(options, day) if origin.address else None
    keys = hashing.read_keyring(day, seconds=seconds, interval=interval)
    if keys is None:
        return hits
    return [
        NewHits(*hit[:4], keys.hash_visitor(origin.identity, hit.key, origin.address))
        for hit in hits
    ]


def _result(refusal: str | None, total: int | None, *, plus: int = 0) -> Hit:
    """What became of a hit, with ``plus`` for one that counts and waits for its COMMIT."""
    if refusal:
        return Hit(False, refusal, total)
    return Hit(True, None, None if total is None else total + plus)


arecord_hit = sync_to_async(record_hit)
"""See record_hit()."""

arecord_hits = sync_to_async(record_hits)
"""See record_hits()."""
