"""Measure how long it takes to record one hit and read the total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from unittest import mock

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django_redis import get_redis_connection
from redis.connection import AbstractConnection

from benchmarks import databases, peers
from benchmarks.app.models import Article
from benchmarks.cores import apart
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands, times
from benchmarks.timing import Subject, time_calls
from tests.browsers import BROWSER

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
    limits = {
        (RECORD, HINCRBY): 1.6,
        (WITH_RULES, HINCRBY): 1.8,
        (LIMITED, HINCRBY): 2.0,
        (WITH_RULES_REPEAT, HINCRBY): 1.8,
        (RECORD, peers.WITH_SESSION): 0.1,
        (RECORD, peers.REPEAT): 0.1,
    }
    return [
        Target(what=f"{alias}: {ours} / {name}", ratio=seconds[ours] / seconds[name], at_most=limit)
        for (ours, name), limit in limits.items()
    ]


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
    return [
        Subject(
            name=HINCRBY, run=lambda _: client.hincrby("benchmark", "field", 1), prepare=prepare
        ),
        Subject(name=RECORD, run=record, prepare=prepare, surroundings=redis),
        Subject(name=TAG, run=render, prepare=prepare, surroundings=redis),
        Subject(name=WITH_RULES, run=record, prepare=_newcomer, surroundings=redis_with_rules),
        Subject(name=LIMITED, run=record, prepare=_newcomer, surroundings=redis_with_limit),
        Subject(name=WITH_RULES_REPEAT, run=record, prepare=prepare, surroundings=redis_with_rules),
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
    send = AbstractConnection.send_packed_command
    with subject.surroundings():
        subject.run(subject.prepare())
        prepared = subject.prepare()
        with (
            CaptureQueriesContext(connections[databases.current()]) as queries,
            mock.patch.object(
                AbstractConnection, "send_packed_command", autospec=True, side_effect=send
            ) as sends,
        ):
            subject.run(prepared)
    return len(queries), sends.call_count


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
