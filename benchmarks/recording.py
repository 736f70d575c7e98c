"""Measure how long it takes to record one hit and read the total, also by a cached page."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from functools import partial

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django_redis import get_redis_connection

from benchmarks import databases, peers, server_time
from benchmarks.app.models import Article
from benchmarks.cores import apart
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands, times
from benchmarks.timing import Subject, time_calls
from django_hitcount import beacon_token
from django_hitcount.views import count_views
from tests.browsers import BROWSER
from tests.redis_server import round_trips

TURNS = 60
QUICK_TURNS = 5

HINCRBY = "bare HINCRBY of redis-py"
RECORD = "RedisBuffer: record_hit().total"
TAG = "RedisBuffer: {% hit_count article %}"
WITH_RULES = "RedisBuffer, all rules on: a new visitor"
LIMITED = "RedisBuffer, all rules on: a new visitor, limit per address"
WITH_RULES_REPEAT = "RedisBuffer, all rules on: a repeat visitor"
DATABASE = "DatabaseBuffer: record_hit().total"
WITH_RULES_DATABASE = "DatabaseBuffer, all rules on: a new visitor"
LIMITED_DATABASE = "DatabaseBuffer, all rules on: a new visitor, limit per address"

BEACON = "RedisBuffer: the hit of a cached page"
BEACON_DATABASE = "DatabaseBuffer: the hit of a cached page"

IN_SERVER = {RECORD: 1.5, LIMITED: 2.5}
"""How many times as long as its commands alone a record may take in Redis."""

ALL_RULES = {"COUNTERS": {"views": {"repeat": "daily", "visitors": True, "per_address": None}}}
"""Visitors are identified and counted, and count once a day. Bots are refused by default."""

WITH_LIMIT = {"COUNTERS": {"views": {"repeat": "daily", "visitors": True}}}
"""The same with the limit per address that such a counter has by default."""


def run(options: Options) -> list[Target]:
    targets = []
    for alias in options.databases:
        with databases.using(alias):
            targets += _measure(alias, QUICK_TURNS if options.quick else TURNS)
    return targets


def _measure(alias: str, turns: int) -> list[Target]:
    article = Article.objects.create(title="Measured")
    subjects = [*_our_subjects(article), *peers.subjects(article)]
    redis = get_redis_connection("hitcount").info("server")["process_id"]
    with apart(redis):
        seconds = time_calls(subjects, turns=turns)
    _print(alias, seconds, {subject.name: _costs(subject) for subject in subjects})
    in_server = _measure_server(subjects, turns)
    limits = {
        (RECORD, HINCRBY): 1.4,
        (WITH_RULES, HINCRBY): 1.75,
        (LIMITED, HINCRBY): 1.75,
        (WITH_RULES_REPEAT, HINCRBY): 1.75,
        (RECORD, peers.WITH_SESSION): 0.1,
        (RECORD, peers.REPEAT): 0.1,
    }
    return [
        *(
            Target(
                what=f"{alias}: {ours} / {name}", ratio=seconds[ours] / seconds[name], at_most=limit
            )
            for (ours, name), limit in limits.items()
        ),
        *(
            Target(
                what=f"{alias}: {name}, in Redis / a script of its commands",
                ratio=ours / same,
                at_most=IN_SERVER[name],
            )
            for name, (ours, same) in in_server.items()
        ),
    ]


def _measure_server(subjects: Sequence[Subject], turns: int) -> dict[str, tuple[float, float]]:
    """Return the microseconds of a record in Redis, and of its commands alone, by subject."""
    client = get_redis_connection("hitcount")
    found = {
        subject.name: server_time.measure(client, subject, turns=turns)
        for subject in subjects
        if subject.name in IN_SERVER
    }
    rows = [
        [name, f"{ours:.1f}", f"{same:.1f}", times(ours / same)]
        for name, (ours, same) in found.items()
    ]
    print_table("Time of a record in Redis", ["", "us", "commands alone", ""], rows)
    return found


def _our_subjects(article: Article) -> list[Subject]:
    client = get_redis_connection("hitcount")
    template = Template("{% load hitcount %}{% hit_count article %}")

    def render(request: HttpRequest) -> str:
        return template.render(Context({"article": article, "request": request}))

    def record(request: HttpRequest) -> int | None:
        return article.record_hit(request).total

    redis, database = partial(buffer, "redis"), partial(buffer, "database")
    redis_with_rules = partial(buffer, "redis", **ALL_RULES)
    database_with_rules = partial(buffer, "database", **ALL_RULES)
    redis_with_limit = partial(buffer, "redis", **WITH_LIMIT)
    database_with_limit = partial(buffer, "database", **WITH_LIMIT)
    prepare = partial(_request, "10.0.0.1")
    sent_hit = partial(_sent_hit, beacon_token(article))
    return [
        Subject(
            name=HINCRBY, run=lambda _: client.hincrby("benchmark", "field", 1), prepare=prepare
        ),
        Subject(name=RECORD, run=record, prepare=prepare, surroundings=redis),
        Subject(name=TAG, run=render, prepare=prepare, surroundings=redis),
        Subject(name=WITH_RULES, run=record, prepare=_newcomer, surroundings=redis_with_rules),
        Subject(name=LIMITED, run=record, prepare=_newcomer, surroundings=redis_with_limit),
        Subject(name=WITH_RULES_REPEAT, run=record, prepare=prepare, surroundings=redis_with_rules),
        Subject(name=BEACON, run=count_views, prepare=sent_hit, surroundings=redis),
        Subject(name=BEACON_DATABASE, run=count_views, prepare=sent_hit, surroundings=database),
        Subject(name=DATABASE, run=record, prepare=prepare, surroundings=database),
        Subject(
            name=WITH_RULES_DATABASE,
            run=record,
            prepare=_newcomer,
            surroundings=database_with_rules,
        ),
        Subject(
            name=LIMITED_DATABASE, run=record, prepare=_newcomer, surroundings=database_with_limit
        ),
    ]


def _sent_hit(token: str) -> HttpRequest:
    """The request of a cached page, to count one hit and to show no number."""
    body = json.dumps({"id": secrets.token_hex(16), "hit": [token], "show": []})
    factory = RequestFactory(headers={**BROWSER, "Sec-Fetch-Site": "same-origin"})
    return factory.post("/seen/", body, "text/plain", REMOTE_ADDR=peers.another_address())


def _newcomer() -> HttpRequest:
    return _request(peers.another_address())


def _request(address: str) -> HttpRequest:
    """A request as the view of a site with sessions and users gets it."""
    request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=address)
    for middleware in (SessionMiddleware, AuthenticationMiddleware):
        middleware(_no_response).process_request(request)
    return request


def _no_response(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def _costs(subject: Subject) -> tuple[int, int]:
    """Count the SQL statements (with BEGIN and COMMIT) and the Redis round trips of one call."""
    with subject.surroundings():
        subject.run(subject.prepare())
        prepared = subject.prepare()
        with (
            CaptureQueriesContext(connection) as queries,
            round_trips(get_redis_connection("hitcount")) as trips,
        ):
            subject.run(prepared)
    return len(queries), trips()


def _print(alias: str, seconds: Mapping[str, float], costs: Mapping[str, Sequence[int]]) -> None:
    rows = [
        [
            name,
            thousands(value * 1e6),
            times(value / seconds[HINCRBY]),
            times(value / seconds[RECORD]),
            *map(str, costs[name]),
        ]
        for name, value in seconds.items()
    ]
    print_table(
        f"Record a hit and show the total, {alias}",
        ["", "us", "HINCRBY", "record_hit()", "SQL", "round trips"],
        rows,
    )
