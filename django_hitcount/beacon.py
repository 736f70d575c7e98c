"""
The beacon: pages that a cache serves to everybody send their hits themselves.

First what such a page gets from ``{% hit_beacon %}``. A token names what the page may count, or
what it may show, signed by this site. It has no time limit, and the same object always has the same
token. So a page may be cached for as long as its site likes, and equal pages stay equal.

Then what the views do with what a page sends. Requests that have nothing to count are refused, and
counted for the report. Anybody may send as many of them as they like, so they cost no query and no
round trip: RefusedTokens.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.signing import BadSignature, Signer
from django.db import router
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from django_hitcount.buffers import Buffer, ask_buffer_or_database, get_buffer
from django_hitcount.conf import DEFAULT_COUNTER, get_config
from django_hitcount.counters import group_items
from django_hitcount.counters.days import day_of, last_days
from django_hitcount.counters.hits import (
    ADDRESS_LIMIT,
    REPEAT,
    Hit,
    NewHits,
)
from django_hitcount.counters.keys import CounterKey, valid_visitor_counter
from django_hitcount.counters.numbers import Number, Wish
from django_hitcount.counters.primary_keys import find_by_texts, named_models, object_id_of
from django_hitcount.db.counter_keys import content_type_id_of, counted_object, counter_key
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable, InvalidArgument
from django_hitcount.numbers import read_numbers
from django_hitcount.recording import record_new_hits
from django_hitcount.refusals.consents import lacks_consent
from django_hitcount.refusals.registry import HitContext, find_refusal, get_refusals
from django_hitcount.visitors.addresses import client_network
from django_hitcount.visitors.hashing import hash_address

logger = logging.getLogger("django_hitcount")

SALT = "django_hitcount.beacon"

HIT, HITS, VISITORS = "hit", "hits", "visitors"

SCRIPT_FILE = "django_hitcount/seen.js"
"""No public list of trackers blocks this name, nor the one that the docs advise for the address:
tests/browser/test_beacon.py."""

SCRIPT = '<script src="{}" data-url="{}" defer></script>'

IMAGE = '<noscript><img src="{}" alt="" width="1" height="1"></noscript>'


class Token(NamedTuple):
    """What a token allows."""

    purpose: str
    """HIT: to count a hit. HITS and VISITORS: to show this number."""

    model: type[Model]
    object_id: str
    counter: str
    days: int
    """For VISITORS: on how many days, today included. 0 for the others."""


def beacon_token(
    obj: Model,
    *,
    counter: str = DEFAULT_COUNTER,
    show: Literal["hits", "visitors"] | None = None,
    days: int = 1,
) -> str:
    """
    Return the token that a page sends to count a hit on ``obj``, or to show a number of it.

    It goes into the attribute ``data-hit`` of an element; with ``show="hits"``, into ``data-hits``;
    with ``show="visitors"``, into ``data-visitors``. The visitors are those of so many ``days``,
    today included. A token that shows a number cannot count a hit.

    Raises InvalidArgument if an argument is invalid. Costs what record_hit() costs before it
    records: a query at the first call of a process for a model.
    """
    obj = counted_object(obj)
    counter_key(obj, counter=counter)  # Checks both, as the next one checks the days.
    last_days(days)
    if show not in {None, HITS, VISITORS}:
        raise InvalidArgument(
            f"Invalid show: {show!r}. Pass 'hits' or 'visitors', or leave it out."
        )
    if show == VISITORS:
        valid_visitor_counter(counter)
    elif days != 1:
        raise InvalidArgument(f"Invalid days: {days!r}. They are for show='visitors' only.")
    model: Any = obj._meta.concrete_model
    of_days = [days] if show == VISITORS else []
    parts = [show or HIT, model._meta.label_lower, object_id_of(obj), counter, *of_days]
    return Signer(salt=SALT).sign_object(parts)


def read_token(text: str) -> Token | None:
    """Return what a token allows; None if it is not ours, or its model or counter has gone."""
    try:
        purpose, label, object_id, counter, *days = Signer(salt=SALT).unsign_object(text)
        model = apps.get_model(label)
    except (BadSignature, LookupError, ValueError):
        return None
    options = get_config().counters.get(counter)
    if options is None or (purpose == VISITORS and not options.visitors):
        return None
    return Token(purpose, model, object_id, counter, *(days or [0]))


def beacon_url(name: str, *args: str) -> str:
    """Return the address of a view. Raises ImproperlyConfigured if the project has none."""
    try:
        return reverse(f"django_hitcount:{name}", args=args)
    except NoReverseMatch as exc:
        raise ImproperlyConfigured(
            "{% hit_beacon %} needs an address that pages can send their hits to. Add it to your "
            'urlpatterns: path("seen/", include("django_hitcount.urls")).'
        ) from exc


def is_preview(request: HttpRequest, obj: Model, counter: str) -> bool:
    """
    Return whether a refusal of HITCOUNT["REFUSALS"] says that the page is a preview.

    The request of the beacon does not know that any more, so the page decides.
    """
    previews = [each for each in get_refusals(counter) if each.name == "preview"]
    return find_refusal(HitContext(request, obj, counter), previews) is not None


VIEW_MILLISECONDS = 24 * 3600 * 1000
"""How long the id of a view is known. A page that was not answered tries again while it is open."""

MINUTE_MILLISECONDS = 120_000
"""How long the hits of an address in one minute are kept: until the minute is certainly over."""

LONGEST_WAIT_SECONDS = 60.0
"""After this time, a process writes the tokens that it has refused."""

NO_OBJECT = CounterKey(0, "", DEFAULT_COUNTER)
"""The key that they are counted under. A refused hit has no row of an object."""


def count_tokens(request: HttpRequest, tokens: Iterable[Token], view_id: str | None) -> list[Hit]:
    """
    Count a hit on each object that exists and has a token to count one. Return a Hit for each.

    If the view with this id has come before, the hits are refused as repeats. Those over the limit
    of the address are refused, too. Raises a database error if something cannot be read; then it
    has counted nothing, and the page may try again.
    """
    objs = _find_objects([token for token in tokens if token.purpose == HIT])
    if not objs:
        return []
    refused_tokens.write()
    hits = [_make_hit(request, token, obj) for token, obj in objs.items()]
    counting = [hit for hit in hits if not hit.refusal]
    refusals = iter(_refuse_repeats_and_floods(request, counting, view_id) if counting else ())
    hits = [hit if hit.refusal else hit._replace(refusal=next(refusals)) for hit in hits]
    pairs, done = zip(objs.values(), hits, strict=True), list[Hit]()
    for some in group_items([hit.key.counter for hit in hits], pairs).values():
        done += record_new_hits([obj for obj, _ in some], [hit for _, hit in some], request)
    return done


def _make_hit(request: HttpRequest, token: Token, obj: Model) -> NewHits:
    context = HitContext(request, obj, token.counter, is_beacon=True)
    return NewHits(counter_key(obj, counter=token.counter), day_of(), 1, find_refusal(context))


def _find_objects(tokens: Collection[Token]) -> dict[Token, Model]:
    """Return the object of each token that has one. Costs a query per model."""
    found: dict[Token, Model] = {}
    for model, some in group_items([token.model for token in tokens], tokens).items():
        ids = {token.object_id for token in some}
        objs: Iterable[Model] = find_by_texts(model, ids, using=router.db_for_read(model))
        if model in named_models:  # They need no row.
            objs = map(model, ids)
        by_id = {object_id_of(obj): obj for obj in objs}
        found |= {token: by_id[token.object_id] for token in some if token.object_id in by_id}
    return found


def _refuse_repeats_and_floods(
    request: HttpRequest, hits: Sequence[NewHits], view_id: str | None
) -> list[str | None]:
    """
    Return for each hit why it is refused, or None.

    The id of the view comes last: if something fails before, the page may try again with it. Costs
    two round trips with Redis. Without it, and while it is away, costs five queries at most.
    """
    limit, amount = get_config().beacon_hits_per_minute, len(hits)
    address = _name_address(request, {hit.key.counter for hit in hits}) if limit else None

    def ask(buffer: Buffer) -> list[str | None]:
        allowed = amount
        if limit and address:
            counted = buffer.count_by_name(address, amount, milliseconds=MINUTE_MILLISECONDS)
            allowed = limit - (counted - amount)
        view = view_id if allowed > 0 else None  # Nothing is kept of more views of a flood.
        if view and not buffer.admit(f"view:{view}", milliseconds=VIEW_MILLISECONDS):
            return [REPEAT] * amount
        return [None if place < allowed else ADDRESS_LIMIT for place in range(amount)]

    return ask_buffer_or_database(ask) or [None] * amount


def _name_address(request: HttpRequest, counters: Iterable[str]) -> str | None:
    """Return the name under which the hits of an address are counted in this minute; or None."""
    address = client_network(request.META, for_limit=True)
    if address is None or any(lacks_consent(request, counter) for counter in counters):
        return None
    try:
        return hash_address(address, f"minute {timezone.now():%Y-%m-%d %H:%M}", day_of()).name
    except BufferUnavailable:
        return None  # The breaker has logged that the visitor key cannot be read.


def read_shown(tokens: Mapping[str, Token]) -> dict[str, int | None]:
    """Return the number that each token shows; None if it cannot be read. See read_numbers()."""
    wanted = {text: _number_of(token) for text, token in tokens.items() if token.purpose != HIT}
    found = read_numbers([*wanted.values()], on_page=True, for_later_pages=True)
    return {text: found.get(number) for text, number in wanted.items()}


def _number_of(token: Token) -> Number:
    key = CounterKey(content_type_id_of(token.model), token.object_id, token.counter)
    return Wish(token.counter, token.days if token.purpose == VISITORS else 0).of(key, day_of())


class RefusedTokens:
    """
    The tokens that this process has refused, by reason, and not written yet.

    It writes them with the next request that counts, or at most once per minute. What a process has
    not written when it ends is not in the report.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: Counter[str] = Counter()
        self._written_at = time.monotonic()

    def add(self, reason: str, amount: int) -> None:
        """Add refused tokens. Writes all of them if the last time was a minute ago."""
        with self._lock:
            self._amounts[reason] += amount
            is_due = time.monotonic() - self._written_at > LONGEST_WAIT_SECONDS
        if is_due:
            self.write()

    def write(self) -> None:
        """Write the sums, if there are any. Logs errors. Costs what recording a hit costs."""
        with self._lock:
            amounts, self._amounts = self._amounts, Counter()
            self._written_at = time.monotonic()
        if not amounts:
            return
        hits = [NewHits(NO_OBJECT, day_of(), amount, reason) for reason, amount in amounts.items()]
        try:
            get_buffer().record(hits)
        except (BufferUnavailable, *DATABASE_ERRORS) as exc:
            logger.error("%d refused tokens are not in the report: %s", amounts.total(), exc)


refused_tokens = RefusedTokens()
