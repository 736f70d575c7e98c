"""Hits on their way to the buffer, with the hashes of their visitors, and what became of them."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import InvalidArgument

AMOUNT_LIMIT = 1_000_000_000
"""Largest amount of one hit: two billion such hits still fit a bigint."""

ADDRESS_LIMIT = "address_limit"
"""The client's address has reached the limit that the counter's ``per_address`` sets."""

BAD_TOKEN = "bad_token"  # noqa: S105
"""A cached page has sent a token that this site did not make, or not with its SECRET_KEY."""

CALLER = "caller"
"""The callable that was passed to record_hit() as ``refuse`` refused the hit."""

NO_REQUEST = "no_request"
"""A template was rendered without a request, so there is no visitor."""

OTHER_SITE = "other_site"
"""A page of another site, which HITCOUNT["BEACON_ORIGINS"] does not name, has sent a token."""

PATH_LIMIT = "path_limit"
"""A page has a new path that is too long, or one more than HITCOUNT["PAGES"] allows in an hour."""

REPEAT = "repeat"
"""The visitor has been counted already, and the counter's ``repeat`` rule forbids another hit."""

UNAVAILABLE = "unavailable"
"""Neither the buffer nor the database is available."""

UNSAVED = "unsaved"
"""A page shows an object that is not saved, as in a preview."""

REASONS: dict[str, str | Promise] = {
    ADDRESS_LIMIT: _("Enough hits of the client's address have been counted."),
    BAD_TOKEN: _("A cached page sent a token that this site did not make."),
    CALLER: _("The view that recorded the hit said so."),
    NO_REQUEST: _(
        "The template has no request: list the context processor "
        "django.template.context_processors.request."
    ),
    OTHER_SITE: _("A page of another site sent the hit."),
    PATH_LIMIT: _(
        "The page is not known, and its path is too long, or there were too many new ones."
    ),
    REPEAT: _("The visitor has been counted already."),
    UNAVAILABLE: _("Neither Redis nor the database took the hit."),
    UNSAVED: _("The object is not saved: a preview."),
}
"""
A sentence about each reserved name, for reports. A refusal in HITCOUNT["REFUSALS"] must not have
such a name.
"""


class AddressHash(NamedTuple):
    """The address of a client, as a keyed hash of 128 bits that is only valid in one interval."""

    interval: str
    """
    The name of the interval in which the limit applies: a day, or as long as ``repeat``. It begins
    at the same time for all addresses.
    """

    last_day: datetime.date
    """The day on which the interval ends."""

    hash: bytes

    @property
    def name(self) -> str:
        """The name of its row. Rows are pruned by the day at the beginning."""
        return f"{self.last_day.isoformat()}:{self.hash.hex()}"


class VisitorHashes(NamedTuple):
    """The visitor of one counter, as keyed hashes of 128 bits; see visitors/hashing.py."""

    key_id: str
    """The key of ``of_day``: hashes under different keys cannot be compared."""

    of_day: bytes | None
    """The hash under the key of the day of the hit; None if the visitor cannot be identified."""

    recent: tuple[bytes, ...] = ()
    """
    If ``repeat`` is a number of seconds: the hash under the current key, then the hashes under the
    other keys that were in use within these seconds. An earlier hit may be under one of them.
    """

    address: AddressHash | None = None
    """The address of the hit, if the counter limits hits per address."""


class NewHits(NamedTuple):
    """An amount of hits of one counter on one day, and the visitor who made them."""

    key: CounterKey
    day: datetime.date
    amount: int
    refusal: str | None = None
    """Why they are refused; None if the buffer decides, or has nothing to decide."""

    visitor: VisitorHashes | None = None
    """Who made them; None if the counter does not need it."""

    counts_refusal: bool = True
    """Whether they are counted and reported as refused if it is the buffer that refuses them."""


class Hit(NamedTuple):
    """The result of record_hit()."""

    counted: bool
    """
    Whether the hit was counted.

    Also True while the hit waits for the COMMIT of a transaction. Only then it is found out whether
    it is a repeat, or beyond the limit of its address. After a rollback it is not counted.
    """

    refusal: str | None
    """The name of the refusal, such as "bot"; None if the hit was counted."""

    total: int | None
    """
    The total of the counter, with this hit if it counts; None if it cannot be read now.

    If Redis did not answer the hit, the total lacks it until Redis is back.

    In a transaction, it does not include the other hits that wait for the same COMMIT, nor this hit
    if the counter has a ``repeat`` or ``per_address`` rule: the hit may turn out to be a repeat.
    """


def check_amount(amount: int) -> int:
    """Return ``amount`` if it can be recorded; raise InvalidArgument if not."""
    if type(amount) is not int or amount == 0 or abs(amount) > AMOUNT_LIMIT:
        raise InvalidArgument(
            f"Invalid amount: {amount!r}. Pass a whole number from -{AMOUNT_LIMIT} to "
            f"{AMOUNT_LIMIT} other than 0."
        )
    return amount
