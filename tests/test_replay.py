"""
Five days of an access log, replayed at the times that it says.

What should be counted is worked out here in a few lines of their own. The log is made up, in
the shape of a real one; HITCOUNT_TEST_LOG names a real one to replay, too.
"""

from __future__ import annotations

import datetime
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
import time_machine
from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.template import RequestContext, Template
from django.test import Client
from django.urls import path
from is_bot import Bots

from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush
from django_hitcount.models import DailyHitSlot, DailyVisitors, HitSlot, RefusedHitSlot
from django_hitcount.unique_visitors import get_visitors
from tests import settings as test_settings
from tests.app.models import Article
from tests.conftest import REDIS_BUFFER

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

REAL_LOG = os.environ.get("HITCOUNT_TEST_LOG")
REQUESTS = 1200
REQUESTS_PER_FLUSH = 250
INTERVAL_SECONDS = 1800
COUNTERS = {
    "views": {"visitors": True},
    "readers": {"repeat": "daily"},
    "sessions": {"repeat": INTERVAL_SECONDS},
}
ZONE = ZoneInfo(test_settings.TIME_ZONE)
NOT_SENT = "-"
LINE = re.compile(
    r'(?P<address>\S+) \S+ (?P<name>\S+) \[(?P<at>[^]]+)\] "(?P<method>[A-Z]+) (?P<path>/\S*)[^"]*"'
    r' (?:200|304) \S+ "[^"]*" "(?P<agent>(?:[^"\\]|\\.)*)"'
)


class Asked(NamedTuple):
    """A line of the log that asks for a page."""

    address: str
    name: str
    """Whose session the browser has; "-" without one."""

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
    """People who come back, some from one address or with one session, and bots."""
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


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a log comes to, by page, counter and day."""

    refused: dict[tuple[datetime.date, str, str], int]
    hits: dict[tuple[str, str, datetime.date], int]
    totals: dict[tuple[str, str], int]
    visitors: dict[tuple[str, datetime.date], int]


@dataclass(frozen=True, kw_only=True)
class Replay:
    due: Counts
    found: Counts
    visitors_later: dict[tuple[str, datetime.date], int]
    """Days later, when the tables alone know."""

    kept: bytes
    """All that was ever seen in tables and Redis."""

    session_keys: list[str]
    is_exact: bool
    """Without Redis, nothing is an estimate."""


def due(log: Iterable[Asked]) -> Counts:
    refused, hits, totals, visitors = Counter(), Counter(), Counter(), Counter()
    seen, within_interval = set(), set()
    for asked in log:
        is_repeat = (asked.page, asked.day, asked.visitor) in seen
        # The clocks of the servers stand still, compared to that of the log: an interval ends
        # only where the visitor can no longer be told, as the visitor key has changed since.
        days = {asked.day, asked.day_after(-INTERVAL_SECONDS), asked.day_after(60)}
        is_soon = any((asked.page, day, asked.visitor) in within_interval for day in days)
        repeats = {"views": False, "readers": is_repeat, "sessions": is_soon}
        for counter, is_refused in repeats.items():
            refusal = asked.refusal or ("repeat" if is_refused else None)
            if refusal:
                refused[asked.day, counter, refusal] += 1
            else:
                hits[asked.page, counter, asked.day] += 1
                totals[asked.page, counter] += 1
        if not asked.refusal and not is_soon:
            within_interval.add((asked.page, asked.day, asked.visitor))
        if not asked.refusal and not is_repeat:
            seen.add((asked.page, asked.day, asked.visitor))
            visitors[asked.page, asked.day] += 1
    return Counts(refused=refused, hits=hits, totals=totals, visitors=visitors)


def show_page(request: HttpRequest, pk: int) -> HttpResponse:
    context = RequestContext(request, {"page": Article.objects.get(pk=pk)})
    return HttpResponse(template().render(context))


@cache
def template() -> Template:
    tags = [f"{{% hit_count page counter={counter!r} %}}" for counter in COUNTERS]
    return Template("{% load hitcount %}" + "".join(tags))


urlpatterns = [path("<int:pk>/", show_page)]


def browser_of(name: str) -> Client:
    """A browser without a session, with one, or with that of a user who is logged in."""
    client = Client()
    if name.startswith("guest"):
        session = client.session
        session["cart"] = ["tea"]
        session.save()
    elif name != NOT_SENT:
        client.force_login(User.objects.get_or_create(username=name)[0])
    return client


class Site:
    """A site with a page for each in a log."""

    def __init__(self, pages: Iterable[str], redis) -> None:
        self.redis = redis
        self.pks = {page: pk for pk, page in enumerate(sorted(set(pages)), 1)}
        self.pages = {str(pk): page for page, pk in self.pks.items()}
        self.articles = Article.objects.bulk_create(Article(pk=pk) for pk in self.pks.values())
        self.browsers: dict[tuple[str, str], Client] = {}
        self.kept = b""

    def serve(self, asked: Asked) -> None:
        key = (asked.name, asked.agent)
        if key not in self.browsers:
            self.browsers[key] = browser_of(asked.name)
        self.browsers[key].generic(
            asked.method,
            f"/{self.pks[asked.page]}/",
            headers={} if asked.agent == NOT_SENT else {"user-agent": asked.agent},
            REMOTE_ADDR=asked.address,
        )

    def flush(self) -> None:
        self.kept += everything(self.redis)
        flush()
        self.kept += everything(self.redis)

    def counts(self, days: Iterable[datetime.date]) -> Counts:
        refused = RefusedHitSlot.objects.values_list("day", "counter", "refusal")
        hits = DailyHitSlot.objects.values_list("object_id", "counter", "day")
        totals = HitSlot.objects.values_list("object_id", "counter")
        return Counts(
            refused={tuple(key): n for *key, n in refused.annotate(Sum("hits"))},
            hits={(self.pages[pk], *key): n for pk, *key, n in hits.annotate(Sum("hits"))},
            totals={(self.pages[pk], key): n for pk, key, n in totals.annotate(Sum("hits"))},
            visitors={
                (self.pages[str(article.pk)], day): found
                for day in days
                for article, found in get_visitors(self.articles, day, day).items()
                if found
            },
        )

    def visitors_in_table(self) -> dict[tuple[str, datetime.date], int]:
        rows = DailyVisitors.objects.filter(counter="views").values_list("object_id", "day")
        return {(self.pages[pk], day): n for pk, day, n in rows.annotate(Sum("count"))}


def everything(redis) -> bytes:
    """All rows of the app and all keys and values in Redis, as they are."""
    kept = [
        value
        for model in apps.get_app_config("django_hitcount").get_models()
        for row in model._base_manager.values_list()
        for value in row
    ]
    readers = {b"hash": redis.hgetall, b"set": redis.smembers, b"string": redis.get}
    for key in redis.scan_iter(count=1000):
        kept += [key, readers[redis.type(key)](key)]
    return b"\n".join(map(raw, kept))


def raw(value: object) -> bytes:
    if isinstance(value, dict):
        return b"\n".join(map(raw, [*value, *value.values()]))
    if isinstance(value, set):
        return b"\n".join(map(raw, value))
    return value if isinstance(value, bytes | memoryview) else str(value).encode()


def run(log: list[Asked], redis, *, is_exact: bool) -> Replay:
    with time_machine.travel(log[0].at, tick=False) as clock:
        site = Site((asked.page for asked in log), redis)
        for number, asked in enumerate(log, 1):
            clock.move_to(asked.at)
            site.serve(asked)
            if number % REQUESTS_PER_FLUSH == 0:
                site.flush()
                compact()
        site.flush()
        found = site.counts({asked.day for asked in log})
        clock.shift(datetime.timedelta(days=3))
        site.flush()
        compact()
        return Replay(
            due=due(log),
            found=found,
            visitors_later=site.visitors_in_table(),
            kept=site.kept + everything(redis),
            session_keys=[
                client.session.session_key
                for (name, _), client in site.browsers.items()
                if name != NOT_SENT
            ],
            is_exact=is_exact,
        )


REPLAYS: dict[tuple[str, str], Replay] = {}
"""Each test looks at the same replay."""


@pytest.fixture(params=["made-up", *([REAL_LOG] if REAL_LOG else [])])
def source(request):
    return request.param


@pytest.fixture
def replay(source, buffer, redis, settings):
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        "COUNTERS": COUNTERS,
        "TRUSTED_PROXIES": 0,
    }
    settings.ROOT_URLCONF = __name__
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cache"
    settings.MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ]
    key = (settings.HITCOUNT["BUFFER"], source)
    if key not in REPLAYS:
        REPLAYS[key] = run(log_of(source), redis, is_exact=key[0] != REDIS_BUFFER)
    return REPLAYS[key]


def without_repeats(refused):
    return {key: n for key, n in refused.items() if key[-1] != "repeat"}


def of_counter(hits, wanted):
    return {(page, *day): n for (page, counter, *day), n in hits.items() if counter == wanted}


def assert_so_many(found, due, *, is_exact):
    """
    Equal, or as near as an estimate by HyperLogLog is: 2 %, and two where there are few.

    Two visitors of a page share a register now and then, three pairs of them hardly ever.
    """
    if is_exact:
        assert found == due
        return
    assert found.keys() == due.keys()
    wrong = {
        key: (n, found[key])
        for key, n in due.items()
        if abs(found[key] - n) > min(n - 1, 2 + n / 50)
    }
    assert not wrong
    assert sum(found.values()) == pytest.approx(sum(due.values()), rel=0.01)


def test_made_up_log_has_all_that_a_real_one_has():
    log = log_of("made-up")
    reasons = Counter(asked.refusal for asked in log)
    visits = Counter((asked.visitor, asked.page, asked.day) for asked in log if not asked.refusal)

    assert len({asked.day for asked in log}) == 5
    assert min(reasons["bot"], reasons["method"]) > 50
    assert sum(n for n in visits.values() if n > 1) > 80
    assert {asked.method for asked in log} == {"GET", "HEAD", "POST"}
    assert len({household(asked.address) for asked in log if ":" in asked.address}) > 40
    assert any(asked.agent == NOT_SENT and asked.method == "GET" for asked in log)
    assert not any("logo" in asked.page for asked in log)


def test_refused_requests_by_day_and_reason_are_exact(replay):
    assert without_repeats(replay.found.refused) == without_repeats(replay.due.refused)


def test_hits_of_each_page_and_day_are_exact(replay):
    assert of_counter(replay.found.hits, "views") == of_counter(replay.due.hits, "views")
    assert of_counter(replay.found.totals, "views") == of_counter(replay.due.totals, "views")


def test_visitors_of_each_page_and_day(replay):
    assert_so_many(replay.found.visitors, replay.due.visitors, is_exact=replay.is_exact)


def test_visitors_are_the_same_when_their_days_are_closed(replay):
    assert replay.visitors_later == replay.found.visitors


def test_daily_rule_counts_each_visitor_once_a_day(replay):
    found, wanted = (of_counter(counts.hits, "readers") for counts in (replay.found, replay.due))
    missing = {key: n - found.get(key, 0) for key, n in wanted.items()}

    assert found.keys() <= wanted.keys()
    assert min(missing.values()) == 0
    # The Bloom filter of Redis may take 1 of 1,000 new visitors for one that it has seen.
    assert sum(missing.values()) <= (0 if replay.is_exact else sum(wanted.values()) / 1000)


def test_rule_of_seconds_counts_each_visitor_once_in_an_interval(replay):
    assert of_counter(replay.found.hits, "sessions") == of_counter(replay.due.hits, "sessions")


def test_each_repeat_is_a_refused_hit(replay):
    found, wanted = (sum(counts.refused.values()) for counts in (replay.found, replay.due))
    counted, due = (sum(counts.hits.values()) for counts in (replay.found, replay.due))

    assert found + counted == wanted + due


def test_nothing_that_is_kept_tells_who_came(source, replay):
    log = log_of(source)
    told = [(asked.address, household(asked.address), asked.agent, asked.name) for asked in log]
    traces = {*chain(*told, replay.session_keys)}
    # What is shorter, such as "-", may stand anywhere.
    traces = {trace for trace in traces if len(trace) > 5}

    assert b"views" in replay.kept
    assert b"readers" in replay.kept
    assert len(traces) > 100
    assert not [trace for trace in traces if trace.encode() in replay.kept]
