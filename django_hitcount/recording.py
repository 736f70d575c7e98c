"""
Record hits: the one path that every hit takes.

1. record_hits() checks the arguments and asks the refusals.
2. It reads where the request comes from, if the counter identifies visitors or limits addresses.
3. The hits wait for the COMMIT, if a transaction is open: _record_after_commit().
4. The buffer takes them, and answers with repeats and totals: _record_now().
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from asgiref.sync import sync_to_async
from django.db import IntegrityError, router
from django.db.models import Model
from django.http import HttpRequest

from django_hitcount import totals
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.counted_models import is_unsaved
from django_hitcount.counters.days import day_of
from django_hitcount.counters.fresh_totals import discard_totals
from django_hitcount.counters.hits import NewHits, check_amount
from django_hitcount.counters.outcomes import Hit
from django_hitcount.db.commits import DelayedWork, run_after_commit
from django_hitcount.db.content_types import clear_content_types
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.routing import hits_alias
from django_hitcount.db.savepoints import OpenTransactions
from django_hitcount.db.transactions import DATABASE_ERRORS, require_autocommit
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.failures import is_server_away
from django_hitcount.outages.page_reads import page_read_breaker
from django_hitcount.outages.waits import CurrentPage, add_wait
from django_hitcount.page_hits import recall_hit, remember_hits
from django_hitcount.refusals import (
    NO_REQUEST,
    UNAVAILABLE,
    UNSAVED,
    HitContext,
    find_refusal,
    log_refused,
)
from django_hitcount.visitors.hashing import read_keyring
from django_hitcount.visitors.origins import RequestOrigin, current_address_interval, read_origin

__all__ = [
    "Hit",
    "Refuse",
    "arecord_hit",
    "arecord_hits",
    "record_hit",
    "record_hits",
    "record_page_hit",
]

logger = logging.getLogger("django_hitcount")

Refuse = Callable[[HitContext], bool]
"""Returns True to refuse a hit."""


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
    Count a hit on ``obj``, unless it is refused.

    Does not raise if a server is away, and then waits for one short timeout at most.

    In a transaction of the object's or the counts' database, the hit waits for the COMMIT, of
    both if there are two. A rollback counts nothing. If autocommit is off in the counts'
    database, the hit is refused as "unavailable".

    Args:
        obj: a saved object of any model.
        request: the request for the page. The refusals of HITCOUNT["REFUSALS"] and the
            counter's ``repeat`` and ``per_address`` rules decide whether its hit counts.
            Without a request, the hit always counts.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        amount: how many hits, a whole number other than 0. A negative amount takes hits back
            and has no visitor.
        at: the day of the hit, as a date or as a moment of that day. None means now.
        refuse: a function that returns True to refuse this hit. It is called last, if no
            refusal of HITCOUNT["REFUSALS"] holds.

    Raises InvalidHit if an argument is invalid.

    With Redis, costs one round trip (in a transaction, one before and one after the COMMIT).
    If Redis does not know the total, costs one more and a query. Without Redis, costs three
    queries, BEGIN and COMMIT, and one to eleven more if the counter identifies visitors. The
    first hit of a visitor that a process records on a day costs a query for the visitor key.
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
    Count a hit on each of ``objs``; return a Hit for each, in order.

    The arguments are those of record_hit(). If one object is invalid, none is counted.

    With Redis, costs one round trip for all objects. Without Redis, costs three queries per
    thousand objects, and one to eleven for each object if the counter identifies visitors.
    """
    objs = list(objs)
    check_amount(amount)
    day = day_of(at)
    try:
        keys = [counter_key(obj, counter=counter) for obj in objs]
    except DATABASE_ERRORS as exc:
        logger.error("%d hits are not counted: %s", len(objs), exc)
        return [Hit(False, UNAVAILABLE, None)] * len(objs)
    refusals: Sequence[str | None] = [None] * len(objs)
    origin = None
    if request is not None:
        transactions = OpenTransactions()
        refusals = _ask_refusals(request, objs, counter, refuse, transactions)
        if amount > 0 and not all(refusals):
            options = get_config().counters[counter]
            origin = read_origin(request, options, transactions=transactions)
    hits = [NewHits(key, day, amount, refusal) for key, refusal in zip(keys, refusals, strict=True)]
    for obj in objs:
        discard_totals(obj, counter=counter)
    databases = {db for obj in objs for db in _databases_of(obj)}
    with CurrentPage(request):
        results, delayed = _record_after_commit(hits, origin, databases)
    if request is not None:
        remember_hits(request, zip(keys, results, strict=True), delayed)
    return results


def record_page_hit(
    request: HttpRequest | None, obj: Model, *, counter: str = DEFAULT_COUNTER
) -> Hit:
    """
    Count a hit on ``obj`` once per request; return the same Hit at each further call.

    Template tags and views use it. Counts nothing without a request, and nothing on an object
    that is not saved, as in a preview. The total of such an object is None.

    The first call costs what record_hit() costs; the next ones cost nothing.

    Raises InvalidHit if ``obj`` is not a model instance or ``counter`` is not declared.
    """
    if is_unsaved(obj):
        log_refused([UNSAVED], counter, request)
        return Hit(False, UNSAVED, None)
    if request is None:
        log_refused([NO_REQUEST], counter)
        return Hit(False, NO_REQUEST, totals.total_or_none(obj, counter=counter))
    try:
        earlier = recall_hit(request, counter_key(obj, counter=counter))
    except DATABASE_ERRORS:
        earlier = None  # record_hit() meets the same error, and logs it.
    return earlier or record_hit(obj, request, counter=counter)


def _ask_refusals(
    request: HttpRequest,
    objs: Sequence[Model],
    counter: str,
    refuse: Refuse | None,
    transactions: OpenTransactions,
) -> list[str | None]:
    """For each object, why the hit on it is refused; None if it is not."""
    refusals = [
        find_refusal(HitContext(request, obj, counter), refuse, transactions=transactions)
        for obj in objs
    ]
    log_refused(refusals, counter, request)
    return refusals


def _databases_of(obj: Model) -> set[str]:
    """Where a transaction may roll back what the page does with ``obj``."""
    return {obj._state.db or hits_alias(), router.db_for_write(type(obj), instance=obj)}


def _record_after_commit(
    hits: Sequence[NewHits], origin: RequestOrigin | None, databases: set[str]
) -> tuple[list[Hit], DelayedWork | None]:
    """
    Record hits now, or after the COMMIT if one of the databases is in a transaction.

    Returns a Hit for each, and the COMMIT that they wait for. A Hit that waits has the total
    that it will have if it counts.
    """
    using = hits_alias()
    try:
        require_autocommit(using)
    except DATABASE_ERRORS as exc:
        return _report_lost(hits, exc), None
    results: list[Hit] = []
    work = partial(_record_now, hits, origin, results)
    delayed = run_after_commit(work, databases={*databases, using})
    if delayed is None:
        return results, None
    before = totals.totals_or_none([hit.key for hit in hits])
    return [_make_hit(hit.refusal, before.get(hit.key), plus=hit.amount) for hit in hits], delayed


def _record_now(hits: Sequence[NewHits], origin: RequestOrigin | None, results: list[Hit]) -> None:
    """Append a Hit for each of ``hits`` to ``results``."""
    if origin:
        hits = _add_visitors(hits, origin)
    keys = [hit.key for hit in hits]
    began_at = time.monotonic()
    try:
        recorded = get_buffer().record(hits)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        if is_server_away(exc):  # A page that has waited for the tables does not read them, too.
            add_wait(page_read_breaker().server, time.monotonic() - began_at)
        if isinstance(exc, IntegrityError):
            clear_content_types()  # One was deleted elsewhere; the next hit finds the new one.
        results += _report_lost(hits, exc)
        return
    known = totals.load_missing_totals(keys, recorded)
    for hit, result in zip(hits, recorded, strict=True):
        if result.refusal and not hit.refusal:
            log_refused([result.refusal], hit.key.counter)
        results.append(_make_hit(result.refusal, known.get(hit.key)))


def _add_visitors(hits: Sequence[NewHits], origin: RequestOrigin) -> Sequence[NewHits]:
    """Add the hashed visitor to each hit, unless the visitor keys cannot be read now."""
    options, day = get_config().counters[hits[0].key.counter], hits[0].day
    seconds = options.repeat if isinstance(options.repeat, int) else None
    interval = current_address_interval(options, day) if origin.address else None
    keyring = read_keyring(day, seconds=seconds, interval=interval)
    if keyring is None:
        return hits
    return [
        NewHits(*hit[:4], keyring.hash_visitor(origin.identity, hit.key, origin.address))
        for hit in hits
    ]


def _make_hit(refusal: str | None, total: int | None, *, plus: int = 0) -> Hit:
    """Make the Hit of a caller; add ``plus`` to its total unless it is refused."""
    if refusal:
        return Hit(False, refusal, total)
    return Hit(True, None, None if total is None else total + plus)


def _report_lost(hits: Sequence[NewHits], error: Exception) -> list[Hit]:
    """Log that hits are lost, and read their totals all the same."""
    logger.error("%d hits are not counted: %s", len(hits), error)
    known = totals.totals_or_none([hit.key for hit in hits])
    return [Hit(False, hit.refusal or UNAVAILABLE, known.get(hit.key)) for hit in hits]


arecord_hit = sync_to_async(record_hit)
"""See record_hit()."""

arecord_hits = sync_to_async(record_hits)
"""See record_hits()."""
