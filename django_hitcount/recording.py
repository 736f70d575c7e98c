"""
Record hits. Every hit takes this path:

1. record_hit() or record_hits() checks the arguments and runs the refusals: _record().
2. If the counter needs it, record_new_hits() finds out where the request comes from.
3. If a transaction is open, the hits wait for its COMMIT.
4. The buffer takes the hits in, and returns which are repeats, and the totals: _record_now().
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from django.db import IntegrityError, router
from django.db.models import Model
from django.db.transaction import TransactionManagementError
from django.http import HttpRequest

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import (
    NO_REQUEST,
    UNAVAILABLE,
    UNSAVED,
    Hit,
    NewHits,
    check_amount,
)
from django_hitcount.counters.numbers import Number, forget_numbers
from django_hitcount.counters.primary_keys import is_unsaved
from django_hitcount.db.counter_keys import clear_content_types, counter_key
from django_hitcount.db.savepoints import DelayedWork, open_transactions, write_aliases
from django_hitcount.db.tables import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS, is_server_away
from django_hitcount.exceptions import BufferUnavailable, InvalidArgument
from django_hitcount.numbers import read_numbers
from django_hitcount.outages import page_read_breaker
from django_hitcount.outages.waits import add_wait, current_page
from django_hitcount.page_numbers import (
    PageMemory,
    find_wanted,
    memory_of,
    page_number,
    read_totals,
    remember_results,
)
from django_hitcount.refusals.consents import get_consents, lacks_consent
from django_hitcount.refusals.registry import (
    GivenRefusal,
    HitContext,
    check_refusals,
    find_refusal,
    log_refused,
    report_refused,
)
from django_hitcount.twins import async_twin
from django_hitcount.visitors import RequestOrigin, read_origin
from django_hitcount.visitors.hashing import add_visitors

logger = logging.getLogger("django_hitcount")


def record_hit(
    obj: Model,
    request: HttpRequest | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
    amount: int = 1,
    at: datetime.date | datetime.datetime | None = None,
    refusals: Iterable[GivenRefusal] | None = None,
    once_per_request: bool = False,
) -> Hit:
    """
    Count a hit on ``obj``, unless it is refused.

    If a server is away, waits for one short timeout at most, and does not raise. In a transaction
    in the database of the object or of the counts, the hit is recorded after the COMMIT of both,
    and not after a rollback. Without autocommit, it is refused as "unavailable". Outside of a
    transaction, the total is left on the object, so that ``obj.hits`` costs nothing after it.

    Args:
        obj: a saved object of any model, with an integer, a UUID, or up to 255 characters as key.
        request: the request for the page. The refusals, which by default refuse all but a GET, and
            the counter's ``repeat`` and ``per_address`` rules decide whether its hit counts.
            Without a request, the hit always counts: leave it out for a like by POST.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        amount: how many hits, a whole number other than 0. A negative amount takes hits back, such
            as a like, and has no visitor. The total may become negative.
        at: the day of the hit, as a date or as a moment of that day. None means now. A day in the
            future counts. A hit of an earlier day is a repeat while that day's visitors are known.
        refusals: a list of what may refuse this hit, in place of the refusals of the counter and of
            HITCOUNT["REFUSALS"]: refusals such as ``django_hitcount.refusals.staff``, and functions
            that take a HitContext and return True to refuse it, whose reason is "caller". An
            exception in one of them is logged, and the next one is asked.
        once_per_request: count only the first hit of ``request`` on the object and counter. Further
            calls, and ``{% hit_count obj %}`` on the page, return the same Hit and cost nothing.
            Without a request, and for an object that is not saved, the hit is then refused.

    Raises InvalidArgument if an argument is invalid.

    Costs:

    - with Redis, one round trip; in a transaction, one before and one after the COMMIT; if Redis
      does not know the total, also one more and a query;
    - without Redis, three queries, BEGIN and COMMIT; if the counter identifies visitors, also one
      to eleven queries;
    - if the counter identifies visitors, a query per process and day for their key, and some a day.
    """
    if once_per_request and is_unsaved(obj):
        log_refused([UNSAVED], counter, request)
        return Hit(False, UNSAVED, None)
    if once_per_request and request is None:
        log_refused([NO_REQUEST], counter)
        return Hit(False, NO_REQUEST, page_number(None, obj, counter=counter))
    return _record([obj], request, counter, amount, at, refusals, once_per_request)[0]


def record_hits(
    objs: Iterable[Model],
    request: HttpRequest | None = None,
    *,
    counter: str = DEFAULT_COUNTER,
    amount: int = 1,
    at: datetime.date | datetime.datetime | None = None,
    refusals: Iterable[GivenRefusal] | None = None,
) -> list[Hit]:
    """
    Count a hit on each of ``objs``. Return a Hit for each, in order. See record_hit() for the other
    arguments. If one object is invalid, counts no hit at all.

    With Redis, costs one round trip per 500 objects. Without Redis, costs three queries per
    thousand objects, and if the counter identifies visitors, one to eleven per object.
    """
    return _record([*objs], request, counter, amount, at, refusals)


def _record(
    objs: Sequence[Model],
    request: HttpRequest | None,
    counter: str,
    amount: int,
    at: datetime.date | datetime.datetime | None,
    refusals: Iterable[GivenRefusal] | None,
    once_per_request: bool = False,
) -> list[Hit]:
    """See record_hits(), and record_hit() for ``once_per_request``, which is for one object."""
    if type(amount) is not int or amount != 1:
        check_amount(amount)
    given = None if refusals is None else check_refusals(refusals)
    day = day_of(at)
    try:
        keys = [counter_key(obj, counter=counter) for obj in objs]
    except DATABASE_ERRORS as exc:
        logger.error("%d hits are not counted: %s", len(objs), exc)
        return [Hit(False, UNAVAILABLE, None)] * len(objs)
    if request is None:
        return record_new_hits(objs, [NewHits(key, day, amount) for key in keys], None)
    if not hasattr(request, "META"):
        raise InvalidArgument(
            f"Invalid request: {request!r}. Pass the request of a page, and a counter by its name: "
            'counter="downloads".'
        )
    if once_per_request and (earlier := memory_of(request).recall_hit(keys[0])):
        return [earlier]
    names = [find_refusal(HitContext(request, obj, counter), given) for obj in objs]
    hits = [NewHits(key, day, amount, name) for key, name in zip(keys, names, strict=True)]
    return record_new_hits(objs, hits, request)


def record_new_hits(
    objs: Sequence[Model],
    hits: Sequence[NewHits],
    request: HttpRequest | None,
    *,
    with_totals: bool = True,
) -> list[Hit]:
    """
    Record a hit on each of ``objs``, in the same order, all on one counter. See record_hits().

    Without totals, reads none: a Hit has its total only if the buffer tells it.

    If a transaction is open, the hits are recorded after its COMMIT. A Hit that waits has the total
    as it will be, but without the hit if the buffer may find that it is a repeat.
    """
    if not hits:
        return []
    counter, delayed, origin, memory = hits[0].key.counter, None, None, None
    wanted: tuple[Number, ...] = ()
    if request is not None:
        memory = memory_of(request)
        options = get_config().counters[counter]
        if options.needs_origin and hits[0].amount > 0 and None in [hit.refusal for hit in hits]:
            is_hidden = get_consents(counter) and lacks_consent(request, counter)
            origin = None if is_hidden else read_origin(request, counter)
        if len(objs) == 1:
            wanted = find_wanted(request, objs[0], hits[0].key)
    using = hits_alias()
    # If the page rolls back in a database of an object, its hit must not count.
    databases = {using}
    for obj in objs:
        forget_numbers(obj, counter=counter)
        databases.add(obj._state.db or using)
    if router.routers:
        databases |= write_aliases(objs)
    page = current_page.set(current_page.get() if request is None else request)
    try:
        opened = open_transactions(databases, autocommit_in=using)
        if opened:
            work = partial(_record_now, objs, hits, request, memory, origin, wanted, with_totals)
            delayed = DelayedWork(work, opened)
            before = read_totals([hit.key for hit in hits], request, wanted) if with_totals else {}
            results = _foresee(hits, before, origin)
        else:
            results = _record_now(objs, hits, request, memory, origin, wanted, with_totals)
    except TransactionManagementError as exc:
        results = _report_lost(hits, exc, with_totals)
    finally:
        current_page.reset(page)
    remember_results(objs, hits, results, memory, delayed)
    return results


def _record_now(
    objs: Sequence[Model],
    hits: Sequence[NewHits],
    request: HttpRequest | None,
    memory: PageMemory | None,
    origin: RequestOrigin | None,
    wanted: tuple[Number, ...],
    with_totals: bool,
) -> list[Hit]:
    """Record hits, and return a Hit for each. Also read what is ``wanted``, for the page."""
    began_at = time.monotonic()
    try:
        if origin:
            hits = add_visitors(hits, origin)
        if memory:
            memory.forget_days(hits)
        recorded, known = get_buffer().record(hits, wanted)
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        if is_server_away(exc):
            # This page has waited for the database once. It does not wait again to read a total.
            add_wait(page_read_breaker().server, time.monotonic() - began_at)
        if isinstance(exc, IntegrityError):
            # Another process has deleted the content type. The next hit finds the current one.
            clear_content_types()
        return _report_lost(hits, exc, with_totals)
    if wanted and memory is not None:
        memory.remember(known.values)
    if len(recorded) == 1 and recorded[0].total is not None and not recorded[0].refusal:
        return [Hit(True, None, recorded[0].total)]  # As most hits, which need nothing of the rest.
    # If an object is there twice, both of its hits have the total with both of them.
    totals = {Number(hit.key): result.total for hit, result in zip(hits, recorded, strict=True)}
    missing = [number for number, total in totals.items() if total is None]
    if missing and with_totals:
        totals |= read_numbers(missing, known, on_page=True)
    refusals = [result.refusal for result in recorded]
    if any(refusals):
        report_refused(objs, hits, refusals, request=request)
    return [
        Hit(not refusal, refusal, totals[Number(hit.key)])
        for hit, refusal in zip(hits, refusals, strict=True)
    ]


def _foresee(
    hits: Sequence[NewHits], before: Mapping[Number, int], origin: RequestOrigin | None
) -> list[Hit]:
    """Make the Hits of those that wait for the COMMIT; ``before`` has the totals without them."""
    options = get_config().counters[hits[0].key.counter]
    # If the buffer may find that they are repeats, totals stay so: no page shows too many.
    may_be_refused = origin and (options.per_address or options.repeat != "always")
    found = []
    for hit in hits:
        total = before.get(Number(hit.key))
        more = 0 if hit.refusal or may_be_refused else hit.amount
        found.append(Hit(not hit.refusal, hit.refusal, None if total is None else total + more))
    return found


def _report_lost(hits: Sequence[NewHits], error: Exception, with_totals: bool) -> list[Hit]:
    """Log that hits are lost. Return their results, with totals if these can be read."""
    logger.error("%d hits are not counted: %s", len(hits), error)
    known = read_numbers([Number(hit.key) for hit in hits if with_totals], on_page=True)
    return [Hit(False, hit.refusal or UNAVAILABLE, known.get(Number(hit.key))) for hit in hits]


arecord_hit = async_twin(record_hit)
"""See record_hit()."""

arecord_hits = async_twin(record_hits)
"""See record_hits()."""
