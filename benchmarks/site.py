"""
Measure how many pages a process serves per second with the middleware of pages, and without.

One page is that of benchmarks/pages.py without numbers, as small as a page can be. The other is a
list as most sites have it: three queries, and a template that shows 40 objects. With the
middleware, each request counts for its page and for the whole site, with their visitors.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import product
from statistics import median

from django.core.handlers.wsgi import WSGIHandler
from django.core.paginator import Paginator
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.test import override_settings
from django.urls import path
from django_redis import get_redis_connection

from benchmarks import databases, pages
from benchmarks.app.models import Article
from benchmarks.cores import apart
from benchmarks.options import Options, buffer
from benchmarks.pages import ARTICLES, OWN, QUICK_TURNS, SITE, THREADS, TURNS
from benchmarks.report import Target, print_table, thousands
from benchmarks.timing import alternate

MIDDLEWARE = "django_hitcount.pages.middleware.PageHitsMiddleware"

PAGES_PER_TURN = 200

LIST = """{% extends "shell.html" %}{% block hits %}{{ articles.paginator.count }} articles
<ul>
  {% for other in articles %}
  <li id="article-{{ other.pk }}">
    <h2><a href="{% url 'list' other.pk %}">{{ other.title|capfirst|truncatewords:6 }}</a></h2>
    <p class="{% cycle 'odd' 'even' %}">{{ other.title|slugify }}, {% now "j M Y" %}</p>
    {% if other.pk == article.pk %}<p>This one.</p>{% endif %}
  </li>
  {% endfor %}
</ul>
{% if articles.has_next %}<a href="?page={{ articles.next_page_number }}">More</a>{% endif %}
{% endblock %}"""

KINDS = {"plain": "a small page", "list": "a list of 40 objects"}

LEAST = 0.85
"""The least share of the throughput of a list, by processor time: see LEAST in
benchmarks/pages.py."""


def show_list(request: HttpRequest, pk: int) -> HttpResponse:
    context = {
        "article": Article.objects.get(pk=pk),
        "articles": Paginator(Article.objects.order_by("pk"), 40).page(1),
        "kind": "list",
        "sections": ["News", "Tea and coffee", "Travel", "Letters"],
        "lines": ["A line of the page that has some words in it, and some more."] * 5,
    }
    return render(request, "list.html", context)


urlpatterns = [*pages.urlpatterns, path("list/<int:pk>/", show_list, name="list")]


def run(options: Options) -> list[Target]:
    targets = []
    for alias in options.databases:
        with databases.using(alias), buffer("redis", **OWN):
            targets += _measure(alias, QUICK_TURNS if options.quick else TURNS)
    return targets


def _handler(*, is_counted: bool) -> WSGIHandler:
    """Make a handler, which loads its middleware now."""
    first = [MIDDLEWARE] if is_counted else []
    with override_settings(MIDDLEWARE=[*first, *SITE["MIDDLEWARE"]]):
        return WSGIHandler()


@contextmanager
def _site() -> Iterator[dict[bool, WSGIHandler]]:
    """Serve the site: yields what serves it with the middleware (True) and without."""
    pages.TEMPLATES["list.html"] = LIST
    with override_settings(**{**SITE, "ROOT_URLCONF": __name__}):
        yield {is_counted: _handler(is_counted=is_counted) for is_counted in (False, True)}


Subject = tuple[str, bool]
"""The page, and whether the middleware counts it."""


def _measure(alias: str, turns: int) -> list[Target]:
    articles = [Article.objects.create(title=f"Article {n}") for n in range(ARTICLES)]
    connections.settings[alias]["CONN_MAX_AGE"] = None
    redis = get_redis_connection("hitcount").info("server")["process_id"]
    subjects: list[Subject] = [*product(KINDS, (False, True))]
    processor_seconds: dict[Subject, list[float]] = {subject: [] for subject in subjects}
    with _site() as handlers, ThreadPoolExecutor(THREADS) as threads, apart(redis):

        def throughput(subject: Subject) -> float:
            kind, is_counted = subject
            start, processor_start = time.perf_counter(), time.process_time()
            show = partial(pages._get, handlers[is_counted], kind)
            shown = [articles[n % ARTICLES] for n in range(PAGES_PER_TURN)]
            statuses = {*threads.map(show, shown)}
            seconds = time.perf_counter() - start
            spent = (time.process_time() - processor_start) / PAGES_PER_TURN
            processor_seconds[subject].append(spent)
            if statuses != {"200 OK"}:
                raise RuntimeError(f"The page was not served: {statuses}")
            return PAGES_PER_TURN / seconds

        for subject in subjects:
            throughput(subject)
        costs = {s: pages._costs(handlers[s[1]], s[0], articles[0]) for s in subjects}
        measures = {subject: partial(throughput, subject) for subject in subjects}
        figures = alternate(measures, turns=turns)
        pages._close_connections(threads)
    processor = {subject: median(of) for subject, of in processor_seconds.items()}
    _print(alias, figures, costs, processor)
    without, counted = ("list", False), ("list", True)
    return [
        Target(
            what=f"{alias}: lists per second of processor time with the middleware / without",
            ratio=processor[without] / processor[counted],
            at_least=LEAST,
        ),
    ]


def _print(
    alias: str,
    figures: Mapping[Subject, float],
    costs: Mapping[Subject, tuple[int, int]],
    processor_seconds: Mapping[Subject, float],
) -> None:
    rows = [
        [
            f"{KINDS[kind]}{', with PageHitsMiddleware' if is_counted else ''}",
            thousands(figures[kind, is_counted]),
            f"{figures[kind, is_counted] / figures[kind, False]:.2f}",
            f"{processor_seconds[kind, is_counted] * 1000:.2f} ms",
            *map(str, costs[kind, is_counted]),
        ]
        for kind, is_counted in figures
    ]
    columns = ["", "pages/s", "share", "processor", "SQL", "round trips"]
    print_table(f"A whole site, {alias}", columns, rows)
