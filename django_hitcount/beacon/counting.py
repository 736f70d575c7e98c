"""Count the hits that cached pages send, and read the numbers that they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from django.db import router
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone

from django_hitcount.beacon.refused import refused_tokens
from django_hitcount.beacon.tokens import HIT, VISITORS, Token
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.base import Buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.conf import get_config
from django_hitcount.counters.days import day_of, days_until
from django_hitcount.counters.hits import (
    ADDRESS_LIMIT,
    REPEAT,
    AddressHash,
    AddressInterval,
    NewHits,
)
from django_hitcount.counters.keys import CounterKey, CounterRange
from django_hitcount.counters.numbers import Number, Wanted
from django_hitcount.counters.primary_keys import find_by_texts, object_id_of
from django_hitcount.db.counter_keys import content_type_id_of, counter_key
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.page_numbers import read_numbers
from django_hitcount.recording import record_new_hits
from django_hitcount.refusals import HitContext, find_refusal, log_refused
from django_hitcount.visitors.addresses import client_network, is_unnamed_proxy
from django_hitcount.visitors.hashing import hash_address

VIEW_MILLISECONDS = 24 * 3600 * 1000
"""How long the id of a view is known. A page that was not answered tries again while it is open."""

MINUTE_MILLISECONDS = 120_000
"""How long the hits of an address in one minute are kept: until the minute is certainly over."""

Identity = tuple[type[Model], str]
"""The model and the key of an object."""


def count_tokens(request: HttpRequest, tokens: Sequence[Token], view_id: str | None) -> None:
    """
    Count a hit for each token whose object exists.

    If the view with this id has come before, the hits are refused as repeats. Those over the limit
    of the address are refused, too. Raises a database error if the objects cannot be read.
    """
    objs = _find_objects(tokens)
    existing = [token for token in tokens if (token.model, token.object_id) in objs]
    if not existing:
        return
    refused_tokens.write()
    refusals = _refuse_repeats_and_floods(request, len(existing), view_id)
    refused = dict(zip(existing, refusals, strict=True))
    for counter, some in groupby(
        sorted(existing, key=attrgetter("counter")), attrgetter("counter")
    ):
        hits = {token: objs[token.model, token.object_id] for token in some}
        _record(request, counter, [(obj, refused[token]) for token, obj in hits.items()])


def _find_objects(tokens: Iterable[Token]) -> dict[Identity, Model]:
    """Return the objects of tokens that exist. Costs a query per model."""
    texts: dict[type[Model], set[str]] = {}
    for token in tokens:
        texts.setdefault(token.model, set()).add(token.object_id)
    return {
        (model, object_id_of(obj)): obj
        for model, wanted in texts.items()
        for obj in find_by_texts(model, wanted, using=router.db_for_read(model))
    }


def _refuse_repeats_and_floods(
    request: HttpRequest, amount: int, view_id: str | None
) -> list[str | None]:
    """
    Return for each of so many hits why it is refused, or None.

    The id of the view comes last: if something fails before, the page may try again with it. Costs
    two round trips with Redis. Without it, and while it is away, costs five queries at most.
    """
    address = _find_address(request)
    for buffer in (get_buffer(), DatabaseBuffer()):
        try:
            allowed = _take_from_limit(buffer, address, amount)
            if view_id and not buffer.admit(f"view:{view_id}", milliseconds=VIEW_MILLISECONDS):
                return [REPEAT] * amount
        except BufferUnavailable:
            continue
        return [None if place < allowed else ADDRESS_LIMIT for place in range(amount)]
    return [None] * amount


def _find_address(request: HttpRequest) -> AddressHash | None:
    """Return the hash of the address whose hits are limited in this minute; None without one."""
    meta = request.META
    is_limited = get_config().beacon_hits_per_minute and not is_unnamed_proxy(meta)
    address = client_network(meta) if is_limited else None
    if address is None:
        return None
    today = day_of()
    minute = AddressInterval(f"minute-{int(timezone.now().timestamp() // 60)}", today, today)
    try:
        return hash_address(address, minute)
    except BufferUnavailable:
        return None  # The breaker has logged that the visitor key cannot be read.


def _take_from_limit(buffer: Buffer, address: AddressHash | None, amount: int) -> int:
    """Return how many of so many hits the address may still make in this minute."""
    limit = get_config().beacon_hits_per_minute
    if limit is None or address is None:
        return amount
    hits = buffer.count_of_address(address, amount, milliseconds=MINUTE_MILLISECONDS)
    return limit - (hits - amount)


def _record(
    request: HttpRequest, counter: str, objs_with_refusals: Sequence[tuple[Model, str | None]]
) -> None:
    """Record a hit on each object. One that has a refusal already is only counted as refused."""
    day = day_of()
    objs = [obj for obj, _ in objs_with_refusals]
    hits = [
        NewHits(
            counter_key(obj, counter=counter),
            day,
            1,
            refusal or find_refusal(HitContext(request, obj, counter, is_beacon=True)),
        )
        for obj, refusal in objs_with_refusals
    ]
    log_refused([hit.refusal for hit in hits], counter, request)
    record_new_hits(objs, hits, request)


def read_shown(tokens: Mapping[str, Token]) -> dict[str, int | None]:
    """Return the number that each token shows; None if it cannot be read. See read_numbers()."""
    wanted = {text: _number_of(token) for text, token in tokens.items() if token.purpose != HIT}
    found = read_numbers(
        Wanted(
            [number for number in wanted.values() if isinstance(number, CounterKey)],
            [number for number in wanted.values() if isinstance(number, CounterRange)],
        )
    )
    return {text: found.get(number) for text, number in wanted.items()}


def _number_of(token: Token) -> Number:
    key = CounterKey(content_type_id_of(token.model), token.object_id, token.counter)
    if token.purpose == VISITORS:
        return CounterRange(key, *days_until(day_of(), token.days))
    return key
