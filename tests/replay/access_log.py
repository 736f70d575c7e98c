"""Access logs: requests for pages, read from a log or made up in the shape of a real one."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from is_bot import Bots

from tests import settings as test_settings

REQUESTS = 1200
ZONE = ZoneInfo(test_settings.TIME_ZONE)
NOT_SENT = "-"
LINE = re.compile(
    r'(?P<address>\S+) \S+ (?P<name>\S+) \[(?P<at>[^]]+)\] "(?P<method>[A-Z]+) (?P<path>/\S*)[^"]*"'
    r' (?:200|304) \S+ "[^"]*" "(?P<agent>(?:[^"\\]|\\.)*)"'
)


class Asked(NamedTuple):
    """A line of the log that requests a page."""

    address: str
    name: str
    """The user whose session the browser has; "-" without a session."""

    at: datetime.datetime
    method: str
    page: str
    agent: str

    @property
    def day(self) -> datetime.date:
        return self.day_after(0)

    def day_after(self, seconds: int) -> datetime.date:
        return (self.at + datetime.timedelta(seconds=seconds)).astimezone(ZONE).date()

    @property
    def refusal(self) -> str | None:
        if self.method != "GET":
            return "method"
        return "bot" if self.agent == NOT_SENT or is_bot(self.agent) else None

    @property
    def visitor(self) -> tuple[str, ...]:
        if self.name != NOT_SENT:
            return (self.name,)
        return (household(self.address), self.agent)


@cache
def is_bot(agent: str) -> bool:
    return bool(Bots().is_bot(agent))


def household(address: str) -> str:
    return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address


def read(lines: Iterable[str]) -> list[Asked]:
    log = []
    for found in filter(None, map(LINE.match, lines)):
        page = found["path"].partition("?")[0]
        if "." not in page.rpartition("/")[2].removesuffix(".html"):
            at = datetime.datetime.strptime(found["at"], "%d/%b/%Y:%H:%M:%S %z")
            agent = re.sub(r'\\(["\\])', r"\1", found["agent"]).strip() or NOT_SENT
            log.append(Asked(found["address"], found["name"], at, found["method"], page, agent))
    return log


BROWSERS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{n}.0) Gecko/20100101 Firefox/{n}.0",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/{n}.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/{n} Safari/605",
]
BOTS = [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    'Feedfetcher "the \\ reader" crawler/1.0',
    "curl/8.5.0",
    NOT_SENT,
]


def made_up_lines() -> Iterator[str]:
    """Visitors who come back, some from one address or with one session, and bots."""
    rng = random.Random(2015)
    agents = [pattern.format(n=n) for pattern in BROWSERS for n in range(100, 130)]
    # Three people behind each address, networks of IPv6, users with two browsers, and guests
    # whose session moves from one address to another; then bots.
    readers = [(f"203.0.113.{n % 50}", NOT_SENT, rng.choice(agents)) for n in range(150)]
    readers += [(f"2001:db8:{n:x}:{n % 3}:", NOT_SENT, rng.choice(agents)) for n in range(60)]
    readers += [(f"198.51.100.{n}", f"reader-{n % 30}", rng.choice(agents)) for n in range(60)]
    readers += [(f"198.51.100.1{n}", f"guest-{n % 30}", agents[n % 30]) for n in range(60)]
    readers += [(f"192.0.2.{n}", NOT_SENT, BOTS[n % len(BOTS)]) for n in range(100)]
    pages = ["/", *(f"/articles/{n}" for n in range(6)), "/tags/c++/", "/v1.2/notes.html"]
    popularity = [1 / (n + 1) for n in range(len(pages))]
    at = datetime.datetime(2015, 5, 17, 10, 5, tzinfo=datetime.UTC)
    for _ in range(REQUESTS):
        at += datetime.timedelta(seconds=rng.randrange(550))
        address, name, agent = rng.choice(readers)
        if ":" in address:
            address += ":".join(f"{rng.randrange(1, 65536):x}" for _ in range(4))
        (method,) = rng.choices(["GET", "HEAD", "POST"], [30, 1, 1])
        (page,) = rng.choices([*pages, "/logo.png"], [*popularity, 0.1])
        quoted = agent.replace("\\", r"\\").replace('"', r"\"")
        yield (
            f'{address} - {name} [{at:%d/%b/%Y:%H:%M:%S %z}] "{method} {page} HTTP/1.1" 200 512 '
            f'"https://example.com/" "{quoted}"\n'
        )


@cache
def log_of(source: str) -> list[Asked]:
    if source == "made-up":
        return read(made_up_lines())
    with Path(source).open(encoding="latin-1") as lines:
        return read(lines)
