"""Time pages of the admin in full, and count their queries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from benchmarks.report import Target, print_table, times
from benchmarks.timing import alternate, seconds_of

TURNS, QUICK_TURNS = 5, 1
BY_KEY = "list by primary key"
BY_FIELD = "list by HitCountField"
REPORT = "report of 30 days"


def measure(alias: str, *, quick: bool) -> list[Target]:
    """Print a table, and return the targets."""
    client = Client()
    client.force_login(User.objects.create_superuser("editor"))
    pages = {name: partial(_get, client, url) for name, url in _urls().items()}
    queries = {name: _count_queries(get) for name, get in pages.items()}
    seconds = alternate(
        {name: partial(seconds_of, get) for name, get in pages.items()},
        turns=QUICK_TURNS if quick else TURNS,
    )
    print_table(
        f"Pages of the admin in full, {alias}",
        ["", "ms", BY_KEY, "queries"],
        [
            [name, f"{value * 1000:,.1f}", times(value / seconds[BY_KEY]), str(queries[name])]
            for name, value in seconds.items()
        ],
    )
    User.objects.all().delete()
    return [
        Target(
            what=f"{alias}: admin's {BY_FIELD} / {BY_KEY}",
            ratio=seconds[BY_FIELD] / seconds[BY_KEY],
            at_most=2,
        ),
        Target(what=f"{alias}: queries of the {REPORT}", ratio=queries[REPORT], at_most=12),
    ]


def _urls() -> dict[str, str]:
    stories = reverse("admin:app_story_changelist")
    return {
        BY_KEY: f"{stories}?o=-1",
        BY_FIELD: f"{stories}?o=-3",
        REPORT: f"{reverse('admin:django_hitcount_hitslot_changelist')}?period=30",
    }


def _get(client: Client, url: str) -> None:
    response = client.get(url)
    assert response.status_code == 200, response.status_code


def _count_queries(work: Callable[[], None]) -> int:
    with CaptureQueriesContext(connection) as queries:
        work()
    return len(queries)
