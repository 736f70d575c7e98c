"""
Read numbers of any counters: hits and visitors, of all time or of some days.

The buffer is asked first, once for all of them. What it keeps is exact. Of the others it has the
hits that it holds. A flush may move those into the tables before these are read. So one statement
reads the sums and the ledger, which says whose hits the sums include.

Redis also has the visitors of each day, and the tables have those up to the last flush. Days whose
visitors were hashed under the same key are a span: their visitors can be compared, and are counted
together. The numbers of different spans are added up.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import zip_longest
from typing import Any

from django_hitcount.buffers import get_buffer
from django_hitcount.counters import group_items, split
from django_hitcount.counters.batches import Known
from django_hitcount.counters.days import open_days
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Number
from django_hitcount.counters.visitors import Visitors, VisitorsOfDays
from django_hitcount.db import daily_visitors, sums
from django_hitcount.db.savepoints import open_transactions, run_after_commit, savepoint
from django_hitcount.db.sums import DayRange
from django_hitcount.db.tables import hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS, is_in_transaction
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import page_read_breaker

HITS_AT_A_TIME = 2000
VISITORS_AT_A_TIME = 500
"""Numbers that are read in one round trip. They take Redis some 10 ms."""

Found = dict[Number, Any]
"""Hits are of the type int, and visitors of the type Visitors."""

logger = logging.getLogger("django_hitcount")


def read_numbers(
    numbers: Collection[Number],
    known: Known | None = None,
    *,
    on_page: bool = False,
    for_later_pages: bool = False,
) -> Found:
    """
    Read numbers. ``known`` is what the buffer has said to the caller: if that is not about all of
    them, the buffer is asked.

    Raises the database's error if it does not answer. But a page does not fail because of a number:
    ``on_page``, leaves out what cannot be read now, and does not read the database while the
    breaker of page reads is open.

    With Redis, costs one round trip for each 2,000 numbers of hits and 500 of visitors, and for
    those that Redis does not know:

    - a query and a round trip for totals, which Redis then knows;
    - a query for the hits of each range of days;
    - a query for visitors, and a round trip for each hundred sketches of days that are counted
      together. On a page, a range that ends today costs one round trip more; then Redis knows it
      until midnight.

    Without Redis, costs a query for all totals, for the hits of each range, and for all visitors.

    In a transaction, Redis must not keep what was read. So with ``for_later_pages``, what it does
    not know is read again after the COMMIT.
    """
    found: Found = {}
    wanted = dict.fromkeys(numbers)
    of_visitors = [number for number in wanted if number.of_visitors]
    hits = [number for number in wanted if not number.of_visitors]
    pieces = split(hits, HITS_AT_A_TIME), split(of_visitors, VISITORS_AT_A_TIME)
    for some_hits, some_visitors in zip_longest(*pieces, fillvalue=()):
        some = [*some_hits, *some_visitors]
        if known and {*some} <= known.values.keys() | known.keepable.keys():
            known_of_some = known
        else:
            known_of_some = get_buffer().read(some, may_be_kept=on_page)
        found |= known_of_some.values
        missing = [number for number in some if number not in found]
        if not missing:
            continue  # As for most pages and lists.
        if for_later_pages and known_of_some.keepable and open_transactions([hits_alias()]):
            load = partial(read_numbers, [*known_of_some.keepable], on_page=True)
            run_after_commit(load, databases=[hits_alias()])
        with errors_logged("Hits cannot be read") if on_page else nullcontext():
            _add_hits(found, [n for n in missing if not n.of_visitors], known_of_some, on_page)
        with errors_logged("Visitors cannot be read") if on_page else nullcontext():
            _add_visitors(found, [n for n in missing if n.of_visitors], known_of_some, on_page)
    return found


@contextmanager
def errors_logged(failure: str) -> Iterator[None]:
    """Suppress errors of the database and of Redis, so that a page does not fail."""
    try:
        yield
    except BufferUnavailable:
        pass  # The breaker has logged it.
    except DATABASE_ERRORS as exc:
        logger.error("%s: %s", failure, exc)


@contextmanager
def reading_tables(*, on_page: bool = False) -> Iterator[str]:
    """Read the tables in the block, behind the breaker if it is for a page."""
    using = hits_alias()
    with page_read_breaker().guard() if on_page else nullcontext(), savepoint(using):
        yield using


def _add_hits(found: Found, numbers: Sequence[Number], known: Known, on_page: bool) -> None:
    """Read hits from the tables, and let the buffer keep totals."""
    days_of_each = [(number.first_day, number.last_day) for number in numbers]
    for days, some in group_items(days_of_each, numbers).items():
        with reading_tables(on_page=on_page) as using:
            of_days = DayRange(*some[0].days) if days[0] else None
            in_tables, applied = sums.read_sums(
                [number.key for number in some], known.held, of_days
            )
        next_ids = {position.next_id for position in known.keepable.values()}
        without_pending = {number: in_tables.get(number.key, 0) for number in some}
        pending = dict.fromkeys(some, 0)
        for batch_id in known.held.keys() - applied:
            for (key, day), hits in known.held[batch_id].items():
                number = Number(key, *days)
                if number in pending and number.has(day):
                    # A flush may have begun between two reads, so each has a position of its own.
                    position = known.keepable.get(number)
                    is_pending = position and position.next_id == batch_id
                    (pending if is_pending else without_pending)[number] += hits
        found |= {number: without_pending[number] + pending[number] for number in some}
        # What a transaction reads may be wrong for others. If pending hits are in the tables, they
        # were flushed meanwhile, or Redis has gone back, and the next flush drops them unwritten.
        if known.keepable and not is_in_transaction(using) and not next_ids & applied:
            get_buffer().keep_totals(without_pending, known)


def _add_visitors(found: Found, numbers: Sequence[Number], known: Known, on_page: bool) -> None:
    """Read visitors from the tables, and let the buffer keep those that it can."""
    if not numbers:
        return
    first_day = min(number.days[0] for number in numbers)
    last_day = max(number.days[1] for number in numbers)
    with reading_tables(on_page=on_page) as using:
        may_be_kept = any(number in known.keepable for number in numbers)
        in_tables = daily_visitors.read_days(
            {number.key for number in numbers},
            first_day,
            last_day,
            merged_from=first_day if first_day < last_day else None,
            kept_from=open_days()[0] if may_be_kept else None,
        )
    days = VisitorsOfDays(known.visitors, in_tables)
    if may_be_kept and not is_in_transaction(using):
        # A transaction may see the table as it was when it began.
        found |= get_buffer().keep_visitors(numbers, days, known)
    found |= count_together(days, [number for number in numbers if number not in found])


def read_visitors_of_days(
    keys: Collection[CounterKey],
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    merged_from: datetime.date | None = None,
) -> VisitorsOfDays:
    """
    Read the visitors of counters on each day.

    Days from ``merged_from`` can be counted together: their sketches have up to 12 KB. Costs a
    query, and with Redis one round trip.
    """
    wanted = [Number(key, first_day, last_day, True) for key in keys]
    known = get_buffer().read(wanted, may_be_kept=False)
    with reading_tables():
        in_tables = daily_visitors.read_days(keys, first_day, last_day, merged_from=merged_from)
    return VisitorsOfDays(known.visitors, in_tables)


def count_together(days: VisitorsOfDays, numbers: Iterable[Number]) -> dict[Number, Visitors]:
    """
    Count the different visitors of ranges of days that were read.

    Costs a round trip for each hundred sketches of days that are counted together.
    """
    spans_of = {number: days.spans_of(number) for number in numbers}
    merges = [span for spans in spans_of.values() for span in spans if days.can_merge(span)]
    merged = iter(get_buffer().count_merged(merges) if merges else ())
    found = {}
    for number, spans in spans_of.items():
        counts: list[int] = []
        for span in spans:
            together = next(merged) if days.can_merge(span) else None
            counts += map(days.on, span) if together is None else [together]
        found[number] = Visitors(sum(counts), len(counts))
    return found
