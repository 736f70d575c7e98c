"""Under which site and path a page is counted, and how many new paths there may be."""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import urlencode

from django.apps import apps
from django.http import HttpRequest
from django.utils import timezone

from django_hitcount.buffers import ask_buffer_or_database
from django_hitcount.conf import get_config
from django_hitcount.pages.models import NO_SITE

HOUR_MILLISECONDS = 2 * 3600 * 1000
"""How long the number of new paths in one hour is kept: until the hour is certainly over."""

_single_slashes = partial(re.compile("//+").sub, "/")

_full: dict[str, tuple[str, int]] = {}
"""The hour, and the limit, for which this process knows that there were enough new paths."""


def path_of(request: HttpRequest) -> str | None:
    """
    Return the path that a page is counted under; None if it is excluded. The rules, in order:

    - no page of Django's admin is counted, whatever its path;
    - several slashes are one;
    - ``strip_slash``, ``lower_case`` and ``exclude`` of HITCOUNT["PAGES"];
    - characters that no table stores, and a ``?`` that is part of the path, are quoted;
    - of the query, only the parameters remain that ``query`` names, in that order.
    """
    match, options = request.resolver_match, get_config().pages
    if match and "admin" in match.app_names:
        return None
    path, excluded = _single_slashes(request.path), options.exclude
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
            path = f"{path}?{urlencode(kept, errors='replace')}"
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

    While Redis is away, the database counts, from 0. Costs a round trip or two statements, and
    nothing if this process knows that there were enough. Raises a database error.
    """
    limit, hour = get_config().pages.new_per_hour, f"{timezone.now():%Y-%m-%dT%H}"
    if _full.get(purpose) == (hour, limit):
        return False
    number = ask_buffer_or_database(
        lambda to: to.count_by_name(f"{hour}:{purpose}", 1, milliseconds=HOUR_MILLISECONDS)
    )
    if number and number > limit:
        _full[purpose] = hour, limit
    return number is not None and number <= limit
