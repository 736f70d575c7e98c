"""Correct counts by hand: add or take back hits of a day, and keep who did it, when and why."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from django.db import connections, transaction
from django.db.models import Model

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import check_day, day_of
from django_hitcount.counters.hits import NewHits, check_amount
from django_hitcount.counters.keys import check_text, is_text
from django_hitcount.counters.numbers import forget_numbers
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import Correction, hits_alias
from django_hitcount.db.transactions import in_transaction, limit_waits, require_autocommit
from django_hitcount.exceptions import InvalidArgument, TooFewHits
from django_hitcount.reading import get_hits
from django_hitcount.twins import async_twin

if TYPE_CHECKING:  # A site may have no app for users.
    from django.contrib.auth.base_user import AbstractBaseUser

__all__ = ["acorrect_hits", "correct_hits"]

PATIENCE_SECONDS = 5.0
"""How long to retry a correction that meets locks. A person waits for it."""

LOCK_WAIT_SECONDS = 1.0
"""How long one try waits for locks."""

Then = Callable[[Correction], object]
"""What else is written in the transaction of a correction."""


def correct_hits(
    obj: Model,
    amount: int,
    *,
    day: datetime.date,
    reason: str,
    user: AbstractBaseUser | str,
    counter: str = DEFAULT_COUNTER,
    then: Then | None = None,
) -> Correction:
    """
    Add hits of a day to ``obj``, or take some back. Keep a Correction that says who, when and why.

    This is for mistakes. For a like that somebody takes back, use ``record_hit(amount=-1)``.

    Writes the hits and the Correction in one transaction, straight into the tables. No refusal
    applies, and visitors do not change. Within a transaction, it is part of that one, and totals
    that Redis keeps change after its COMMIT.

    Args:
        obj: a saved object of any model.
        amount: how many hits to add; negative to take hits back.
        day: the date of the hits in TIME_ZONE, not in the future.
        reason: why, up to 200 characters.
        user: who corrects the hits: a user, or the name of a script. Only the name is kept.
        counter: the name of a counter in HITCOUNT["COUNTERS"].
        then: called with the Correction in the same transaction, again in each try, such as to log
            it. If it raises, nothing is written. If a function raises that it passes to
            on_commit(), everything is.

    Raises TooFewHits if more hits are taken back than were counted on that day, and InvalidArgument
    if an argument is invalid. Raises the database's error if the database does not answer, or if
    the caller's transaction is REPEATABLE READ or SERIALIZABLE and another correction came in
    between. Nothing is written then. At these levels, hits that were flushed since the transaction
    began may not be seen.

    Costs a transaction of three statements. To take hits back costs what get_hits() costs, too.
    With Redis, costs one more statement and a round trip, and after the COMMIT a round trip and a
    query.
    """
    hits = NewHits(counter_key(obj, counter=counter), _check_day(day), check_amount(amount))
    text = reason.strip() if hasattr(reason, "strip") else reason  # It may be lazy.
    correction = Correction(
        **hits.key._asdict(),
        day=day,
        amount=amount,
        reason=check_text(text, conf.REASON_MAX_LENGTH, "reason"),
        made_by=_name_of(user),
    )
    _write(obj, hits, correction, then)
    forget_numbers(obj, counter=counter)
    return correction


def _check_day(day: datetime.date) -> datetime.date:
    if check_day(day) > day_of():
        raise InvalidArgument(f"Invalid day: {day} is in the future. Pass a day up to {day_of()}.")
    return day


def _name_of(user: object) -> str:
    name = user if isinstance(user, str) else getattr(user, "get_username", str)()
    name = name.strip()[: conf.USERNAME_MAX_LENGTH]
    if not is_text(name, conf.USERNAME_MAX_LENGTH):
        raise InvalidArgument(
            f"Invalid user: {user!r} has no name that is a text. Pass a user who has logged in, or "
            "a name, without NUL and half surrogate pairs."
        )
    return name


def _write(obj: Model, hits: NewHits, correction: Correction, then: Then | None) -> None:
    """Write all rows in one transaction, and pause the total."""
    using = hits_alias()
    work = partial(_write_rows, obj, hits, correction, then, using)
    if connections[using].in_atomic_block:
        require_autocommit(using)
        with transaction.atomic(using=using):
            work()
    else:
        in_transaction(work, using=using, patience_seconds=PATIENCE_SECONDS, repeatable=False)


def _write_rows(
    obj: Model, hits: NewHits, correction: Correction, then: Then | None, using: str
) -> None:
    """
    Write the hits first, and then look whether too many were taken back.

    All corrections of a counter write to the same slot, so the second of two waits here until the
    first one commits, and then sees what that one took back.
    """
    with limit_waits(using, seconds=LOCK_WAIT_SECONDS, is_at_begin=True):
        slots.add_hits([hits], slot=slots.CORRECTION_SLOT)
    if hits.amount < 0:
        _check_rest(obj, hits)
    correction.pk = None  # An earlier try may have set it.
    correction.save(using=using, force_insert=True)
    if then:
        then(correction)
    get_buffer().pause_totals([hits.key])


def _check_rest(obj: Model, hits: NewHits) -> None:
    """
    Raise TooFewHits if the hits of the day, with those in the buffer, are now negative.

    The caller's transaction may see the tables as they were when it began. But it sees the row of
    corrections as it is now, since it has just written it, and compaction leaves that row alone.
    Otherwise this could take hits back that another correction took back meanwhile.
    """
    rest = get_hits(obj, first_day=hits.day, last_day=hits.day, counter=hits.key.counter)
    if rest < 0:
        counted = max(rest - hits.amount, 0)
        raise TooFewHits(
            f"Invalid amount: {hits.amount}. Only {counted} hits were counted on {hits.day}. "
            f"Take back {counted} at most.",
            counted=counted,
        )


acorrect_hits = async_twin(correct_hits)
"""See correct_hits()."""
