"""Requests of visitors, and the rule for those who come again."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from django.http import HttpRequest
from django.test import RequestFactory

from django_hitcount.buffers import Buffer, get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import (
    Admission,
    CountedAddress,
    DailyVisitors,
    SeenVisitor,
    VisitorSalt,
)
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountMixin
from django_hitcount.status import get_refused_hits
from django_hitcount.visitors import hashing
from tests.browsers import BROWSER

DAY = datetime.date(2026, 3, 10)
NOON = datetime.datetime(2026, 3, 10, 11, tzinfo=datetime.UTC)


def request_of(visitor: int | str) -> HttpRequest:
    """A request by a visitor, given as an address or as the end of one."""
    address = visitor if isinstance(visitor, str) else f"203.0.113.{visitor}"
    return RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=address)


def visit(
    article: HitCountMixin, visitors: Iterable[int], *, at: datetime.date | None = None
) -> None:
    """Record one hit of each visitor."""
    for visitor in visitors:
        article.record_hit(request_of(visitor), at=at)


def is_about(visitors: int, count: int) -> bool:
    """Whether ``count`` is right, but for two visitors who may share a register of a sketch."""
    return visitors - 2 <= count <= visitors


def refused_today() -> dict[tuple[str, str], int]:
    """The refused hits of today, by counter and refusal, after a flush."""
    flush_hits()
    return {
        (row.counter, row.refusal): row.hits
        for row in get_refused_hits(first_day=day_of(), last_day=day_of())
    }


def set_rule(settings, repeat="always", *, visitors=False, **more: object) -> Buffer:
    """Set the options of the counter "views", and more settings; returns the buffer."""
    options = {"repeat": repeat, "visitors": visitors}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}, **more}
    return get_buffer()


def forget_keys() -> None:
    """Forget all visitor keys, as a process that begins."""
    hashing._read_key.cache_clear()
    hashing._read_keys_of_day.cache_clear()


def kept_of_visitors(redis) -> list[object]:
    """What Redis and the tables keep of visitors, without the ids that pages have made up."""
    keys = [key.decode() for key in redis.keys("*")]
    kinds = ("repeat", "seen", "addresses", "visitors", "sketches_of")
    tables = (VisitorSalt, SeenVisitor, DailyVisitors, CountedAddress)
    rows = [row for table in tables for row in table.objects.all()]
    return [
        *[key for key in keys if any(f":{kind}:" in key for kind in kinds)],
        *rows,
        *Admission.objects.exclude(name__startswith="throttle:view:"),
    ]
