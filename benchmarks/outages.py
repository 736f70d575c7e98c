"""Measure how long pages take, and how many hits are lost, while a server is away or slow."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.db import DatabaseError, connection, connections
from django.db.models import Sum
from django.test import override_settings

from benchmarks import databases, faults, servers
from benchmarks.app.models import Article
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands
from benchmarks.serving import Pages, Phases, Served
from django_hitcount.db.tables import DailyVisitors
from django_hitcount.exceptions import HitCountError
from django_hitcount.maintenance import flushing
from django_hitcount.models import DailyHitSlot, HitSlot
from django_hitcount.recording import record_hits
from tests.proxies import Proxy
from tests.servers import HOST, Valkey, wait_until

PHASES = Phases(0.5, 5.0, 3.0)
QUICK_PHASES = Phases(0.1, 0.4, 0.2)
TAGS = (1, 9)
SLOTS = 64
COUNT = "{% hit_count article %}"
VISITORS = "{% visitors article %}"

DATABASE_OPTIONS: dict[str, dict[str, object]] = {
    "mariadb": {
        "connect_timeout": 2,
        "read_timeout": 2,
        "write_timeout": 2,
        "init_command": "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
    },
    "postgresql": {
        "connect_timeout": 2,
        "tcp_user_timeout": 2000,
        "options": "-c lock_timeout=1s -c statement_timeout=2s -c synchronous_commit=off",
    },
}
"""Timeouts of the databases: without them, a page would wait for ever."""


class Outage(NamedTuple):
    """Something that happens, and the pages that are served meanwhile."""

    name: str
    buffer: str
    fault: Callable[[list[Article]], AbstractContextManager[object]]
    location: str
    """The address of Redis."""

    tag: str = COUNT


def run(options: Options) -> list[Target]:
    logging.getLogger("django_hitcount").setLevel(logging.CRITICAL)
    phases = QUICK_PHASES if options.quick else PHASES
    aliases = [alias for alias in options.databases if alias in DATABASE_OPTIONS]
    with _redis() as (valkey, proxy):
        for alias in aliases:
            with databases.using(alias), _timeouts(alias):
                outages = _of_database(alias, valkey)
                if alias == aliases[-1]:  # Once is enough: the database makes no difference.
                    outages = [*_of_redis(valkey, proxy), *outages]
                measured = [(o, n, *_measure(o, n, phases)) for o in outages for n in TAGS]
                _print(f"{alias}, an outage of {phases.during:g} s", measured)
    return []


@contextmanager
def _redis() -> Iterator[tuple[Valkey, Proxy]]:
    """A Redis that may be killed, and a proxy that can slow it down."""
    with tempfile.TemporaryDirectory(prefix="hitcount-") as directory, ExitStack() as stack:
        # With "no", a kill of the process loses nothing that Redis has answered.
        valkey = Valkey(Path(directory), options=["--appendonly", "yes", "--appendfsync", "no"])
        valkey.start()
        stack.callback(valkey.stop)
        proxy = Proxy(valkey.port)
        proxy.start()
        stack.callback(proxy.stop)
        yield valkey, proxy


@contextmanager
def _timeouts(alias: str) -> Iterator[None]:
    settings = connections.settings[alias]
    before = settings["OPTIONS"]
    settings["OPTIONS"] = {**before, **DATABASE_OPTIONS[alias]}
    connection.close()
    try:
        yield
    finally:
        settings["OPTIONS"] = before
        connection.close()


def _of_redis(valkey: Valkey, proxy: Proxy) -> list[Outage]:
    straight, through_proxy = (f"redis://{HOST}:{port}/1" for port in (valkey.port, proxy.port))
    plain = {
        "stopped": faults.stopped,
        "killed": faults.killed,
        "frozen": faults.frozen,
        "full": faults.full,
        "read-only": faults.read_only,
    }
    return [
        *(
            Outage(f"Redis {name}", "redis", lambda _, fault=fault: fault(valkey), straight)
            for name, fault in plain.items()
        ),
        *(
            Outage(
                f"Redis slow by {milliseconds} ms",
                "redis",
                lambda _, seconds=milliseconds / 1000: faults.slow(proxy, seconds),
                through_proxy,
            )
            for milliseconds in (50, 200, 240)
        ),
        Outage(
            "Redis drips, a byte per 200 ms",
            "redis",
            lambda _: faults.slow(proxy, 0.2, drips=True),
            through_proxy,
        ),
    ]


def _of_database(alias: str, valkey: Valkey) -> list[Outage]:
    server = servers.RUNNING[alias]
    all_slots = range(SLOTS + 1)
    visitors = DailyVisitors._meta.db_table
    outages = {
        "one slot of one counter locked": lambda found: faults.locked_rows(found[0].pk, [1]),
        "all slots of one counter locked": lambda found: faults.locked_rows(found[0].pk, all_slots),
        "tables locked": lambda _: faults.locked_tables(*faults.TABLES),
        "frozen": lambda _: faults.frozen(server),
        "killed": lambda _: faults.killed(server),
    }
    location = f"redis://{HOST}:{valkey.port}/1"
    return [
        *(
            Outage(f"{alias}, {name}", "database", fault, location)
            for name, fault in outages.items()
        ),
        Outage(
            f"{alias}, tables locked, {VISITORS}",
            "redis",
            lambda _: faults.locked_tables(visitors),
            location,
            VISITORS,
        ),
    ]


def _measure(outage: Outage, tags: int, phases: Phases) -> tuple[Served, int]:
    cache = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": outage.location}
    with (
        override_settings(CACHES={"default": cache, "hitcount": cache}),
        buffer(outage.buffer, COUNTERS={"views": {"visitors": outage.tag == VISITORS}}),
    ):
        articles = _articles()
        before = _hits(articles)
        pages = Pages(tag=outage.tag, articles=articles, tags=tags)
        served = pages.serve(outage.fault(articles), phases)
        connections.close_all()
        if outage.tag != COUNT:
            return served, 0
        wait_until(_is_flushed, "a flush")
        return served, served.hits - (_hits(articles) - before)


def _articles() -> list[Article]:
    """Make articles that have a row in each of their slots."""
    articles = [Article.objects.create(title="Measured") for _ in range(max(TAGS))]
    hits = record_hits(articles)
    assert all(hit.counted for hit in hits)
    flushing.flush_hits()
    for model in (HitSlot, DailyHitSlot):
        for row in model.objects.filter(object_id__in=[str(a.pk) for a in articles]):
            copies = [_copy(row, slot) for slot in range(SLOTS + 1) if slot != row.slot]
            model.objects.bulk_create(copies)
    return articles


def _copy(row: HitSlot | DailyHitSlot, slot: int) -> HitSlot | DailyHitSlot:
    values = {f.attname: getattr(row, f.attname) for f in row._meta.fields if not f.primary_key}
    return type(row)(**{**values, "slot": slot, "hits": 0})


def _is_flushed() -> bool:
    try:
        flushing.flush_hits()
    except (HitCountError, DatabaseError, ExceptionGroup):  # A server is not back yet.
        return False
    return True


def _hits(articles: list[Article]) -> int:
    rows = HitSlot.objects.filter(object_id__in=[str(article.pk) for article in articles])
    total: int = rows.aggregate(total=Sum("hits"))["total"]
    return total


def _print(title: str, measured: list[tuple[Outage, int, Served, int]]) -> None:
    milliseconds = [partial(Served.quantile, share=share) for share in (0.5, 0.99, 1.0)]
    rows = []
    for outage, tags, served, lost in measured:
        hits = served.hits, lost, served.lost_after
        rows.append(
            [
                outage.name,
                str(tags),
                thousands(len(served.seconds)),
                *(thousands(quantile(served) * 1000) for quantile in milliseconds),
                *(map(thousands, hits) if outage.tag == COUNT else [""] * len(hits)),
            ]
        )
    print_table(
        f"Pages meanwhile, in ms; tables in {title}",
        ["", "tags", "pages", "p50", "p99", "slowest", "hits", "lost", "lost after"],
        rows,
    )
