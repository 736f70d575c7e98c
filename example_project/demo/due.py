"""What the site should count for a log, computed without any code of django_hitcount."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date
from functools import cache
from ipaddress import ip_address, ip_network

from is_bot import Bots

from demo.access_log import PageRequest

NO_PAGE = "no page"
"""Not a refusal of django_hitcount: the site shows no page, so there is nothing to count."""

BOTS = Bots()
SITE_ZONE = UTC
"""TIME_ZONE of the site: a day begins at midnight there, whatever zone the log is in."""

Visitor = tuple[date, str, str]
"""Day, household and user agent."""


@dataclass(slots=True)
class Due:
    refused: Counter[str] = field(default_factory=Counter)
    """Requests that should not be counted, by reason."""

    requests: Counter[str] = field(default_factory=Counter)
    """All of them, by path."""

    hits: Counter[str] = field(default_factory=Counter)
    visitors: dict[str, set[Visitor]] = field(default_factory=lambda: defaultdict(set))
    """By path, each once a day."""

    requests_by_day: Counter[date] = field(default_factory=Counter)
    hits_by_day: Counter[date] = field(default_factory=Counter)


def due(requests: Iterable[PageRequest]) -> Due:
    """What the answered requests should add up to."""
    sums = Due()
    for request in requests:
        day = request.at.astimezone(SITE_ZONE).date()
        sums.requests[request.path] += 1
        sums.requests_by_day[day] += 1
        if reason := refusal_of(request):
            sums.refused[reason] += 1
        else:
            sums.hits[request.path] += 1
            sums.hits_by_day[day] += 1
            visitor = (day, network_of(request.address), request.user_agent)
            sums.visitors[request.path].add(visitor)
    return sums


def refusal_of(request: PageRequest) -> str | None:
    if request.method not in ("GET", "HEAD"):
        return NO_PAGE
    if request.method == "HEAD":
        return "method"
    return "bot" if is_bot(request.user_agent) else None


@cache
def is_bot(user_agent: str) -> bool:
    return not user_agent or bool(BOTS.is_bot(user_agent))


@cache
def network_of(address: str) -> str:
    """An IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"  # A host's name. The site then sees that of the proxy, us.
    found = getattr(found, "ipv4_mapped", None) or found
    return str(found) if found.version == 4 else str(ip_network(f"{found}/64", strict=False))
