"""Under which site and path a page is counted, and how many new paths there may be."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from urllib.parse import urlencode

from django.apps import apps
from django.http import HttpRequest

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.conf import get_config
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import AddressHash, AddressInterval
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.pages.models import NO_SITE

HOUR_SECONDS = 3600

_single_slashes = partial(re.compile("//+").sub, "/")

_full: dict[str, tuple[int, int]] = {}
"""The hour, and the limit, for which this process knows that there were enough new paths."""


def path_of(request: HttpRequest) -> str | None:
    """
    Return the path that a page is counted under; None if it is excluded. The rules, in order:

    - several slashes are one;
    - ``strip_slash``, ``lower_case`` and ``exclude`` of HITCOUNT["PAGES"];
    - characters that no table stores, and a ``?`` that is part of the path, are quoted;
    - of the query, only the parameters remain that ``query`` names, in that order.
    """
    options = get_config().pages
    path, excluded = _single_slashes(request.path), options.exclude
    if not path.isascii():
        path = path.encode(errors="replace").decode()
    if options.strip_slash:
        path = path.rstrip("/") or "/"
    if options.lower_case:
        path, excluded = path.lower(), tuple(map(str.lower, excluded))
    if f"{path}/".startswith(excluded):
        return None
    path = path.replace("\0", "%00").replace("?", "%3F")
    if options.query:
        given = [(name, request.GET.get(name)) for name in options.query]
        if kept := [(name, value) for name, value in given if value]:
            path = f"{path}?{urlencode(kept)}"
    return path


def site_id_of(request: HttpRequest | None) -> int:
    """Return the id of the current site, or NO_SITE. Costs what get_current_site() costs."""
    if not apps.is_installed("django.contrib.sites"):
        return NO_SITE
    from django.contrib.sites.models import Site
    from django.contrib.sites.shortcuts import get_current_site

    try:
        return int(get_current_site(request).pk)  # type: ignore[union-attr]
    except Site.DoesNotExist:
        return NO_SITE


def may_become_page(purpose: str) -> bool:
    """
    Return whether one more new path may become a page in this hour, and count it.

    While Redis is away, the database counts, from 0. Costs what count_of_address() costs, and
    nothing if this process knows that there were enough. Raises a database error.
    """
    limit, hour = get_config().pages.new_per_hour, int(time.time() // HOUR_SECONDS)
    if _full.get(purpose) == (hour, limit):
        return False
    name, today = f"{purpose}-{hour}", day_of()
    digest = blake2b(name.encode(), digest_size=16).digest()
    # It is no address, but a number that all processes raise together, as that of an address.
    paths = AddressHash(AddressInterval(name, today, today), digest)
    for buffer in (get_buffer(), DatabaseBuffer()):
        with suppress(BufferUnavailable):
            number = buffer.count_of_address(paths, 1, milliseconds=2 * HOUR_SECONDS * 1000)
            if number > limit:
                _full[purpose] = hour, limit
            return number <= limit
    return False


def forget_full_hours() -> None:
    """Forget that there were enough new paths. For tests."""
    _full.clear()
