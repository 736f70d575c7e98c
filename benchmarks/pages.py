"""
Measure how many pages a process serves per second, with numbers on them and without.

A page is a request to Django's WSGI handler with the middleware of a new project: one query, and a
template of 40 lines. All threads of a process together use one core, and Redis has another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.test import RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path
from django_redis import get_redis_connection

from benchmarks import databases
from benchmarks.app.models import Article
from benchmarks.cores import apart
from benchmarks.options import Options, buffer
from benchmarks.report import Target, print_table, thousands
from benchmarks.timing import alternate
from tests.browsers import BROWSER
from tests.redis_server import sends

THREADS = 4
PAGES_PER_TURN = 400
TURNS = 31
QUICK_TURNS = 2
ARTICLES = 50

PLAIN = "the page without numbers"
BARE = "{% bare_hit article %}"
COUNTED = "{% hit_count article %}"
WEEK = "{% hit_count article %} {% visitors article days=7 %}"
ALL = (
    "{% hit_count article %} {% hits article counter='downloads' %} "
    "{% visitors article %} {% visitors article days=7 %}"
)

LEAST = {COUNTED: 0.97, WEEK: 0.94}
"""The least share of the throughput of a page with a bare HINCRBY, by processor time: by the clock,
what else the machine does weighs more than the difference."""

SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <title>{% block title %}Articles{% endblock %}</title>
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="canonical" href="{% url kind article.pk %}">
</head>
<body class="{% if request.GET.print %}print{% else %}screen{% endif %}">
  <header>
    <nav>
      <ul>
        {% for name in sections %}
        <li{% if forloop.first %} class="first"{% endif %}>
          <a href="/sections/{{ name|slugify }}/">{{ name }}</a>
        </li>
        {% endfor %}
      </ul>
    </nav>
    {% if request.path != "/" %}<p><a href="/">Home</a></p>{% endif %}
  </header>
  <main>
    <article id="article-{{ article.pk }}">
      <h1>{{ article.title|capfirst }}</h1>
      <p class="meta">{% now "Y" %}, {% block hits %}{% endblock %}</p>
      {% for line in lines %}
      <p class="{% cycle 'odd' 'even' %}">{{ line|truncatewords:8 }}</p>
      {% empty %}
      <p>Nothing yet.</p>
      {% endfor %}
      {% with length=article.title|length %}
      <p>The title has {{ length }} letter{{ length|pluralize }}.</p>
      {% endwith %}
    </article>
  </main>
  <footer>
    <p>{{ request.path }} {% comment %}The end.{% endcomment %}</p>
  </footer>
</body>
</html>
"""

KINDS = {"plain": PLAIN, "bare": BARE, "counted": COUNTED, "week": WEEK, "all": ALL}

TEMPLATES = {
    "shell.html": SHELL,
    **{
        f"{kind}.html": (
            "{% extends 'shell.html' %}{% load hitcount bare %}{% block title %}{{ article.title }}"
            "{% endblock %}{% block hits %}" + source.removeprefix(PLAIN) + "{% endblock %}"
        )
        for kind, source in KINDS.items()
    },
}

SITE: dict[str, Any] = {
    "ALLOWED_HOSTS": ["testserver"],
    "DEBUG_PROPAGATE_EXCEPTIONS": True,
    "ROOT_URLCONF": "benchmarks.pages",
    "MIDDLEWARE": [
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ],
                "libraries": {
                    "hitcount": "django_hitcount.templatetags.hitcount",
                    "bare": "benchmarks.app.templatetags.bare",
                },
                "loaders": [
                    (
                        "django.template.loaders.cached.Loader",
                        [("django.template.loaders.locmem.Loader", TEMPLATES)],
                    )
                ],
            },
        }
    ],
}

OWN = {
    "COUNTERS": {"views": {"visitors": True}, "downloads": {}},
    "REDIS_TIMEOUT_SECONDS": 10,
}
"""Settings of HITCOUNT. On a busy machine, Redis may answer late: it still counts as an answer."""


def show(request: HttpRequest, kind: str, pk: int) -> HttpResponse:
    """The view."""
    context = {
        "article": get_object_or_404(Article, pk=pk),
        "kind": kind,
        "sections": ["News", "Tea and coffee", "Travel", "Letters"],
        "lines": ["A line of the article that has some words in it, and some more."] * 5,
    }
    return render(request, f"{kind}.html", context)


# A URL pattern for each: what pages of one pattern show is read for all of them.
urlpatterns = [path(f"{kind}/<int:pk>/", show, {"kind": kind}, name=kind) for kind in KINDS]


def run(options: Options) -> list[Target]:
    targets = []
    for alias in options.databases:
        with databases.using(alias), site():
            targets += _measure(alias, QUICK_TURNS if options.quick else TURNS)
    return targets


@contextmanager
def site() -> Iterator[None]:
    with override_settings(**SITE), buffer("redis", **OWN):
        yield


def _measure(alias: str, turns: int) -> list[Target]:
    articles = [Article.objects.create(title=f"Article {n}") for n in range(ARTICLES)]
    # As a site with much traffic has it.
    connections.settings[alias]["CONN_MAX_AGE"] = None
    handler = WSGIHandler()
    redis = get_redis_connection("hitcount").info("server")["process_id"]
    with ThreadPoolExecutor(THREADS) as threads, apart(redis):
        processor_seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}

        def throughput(kind: str) -> float:
            pages = range(PAGES_PER_TURN)
            start, processor_start = time.perf_counter(), time.process_time()
            statuses = {*threads.map(lambda n: _get(handler, kind, articles[n % ARTICLES]), pages)}
            seconds = time.perf_counter() - start
            processor_seconds[kind].append((time.process_time() - processor_start) / PAGES_PER_TURN)
            if statuses != {"200 OK"}:
                raise RuntimeError(f"The page was not served: {statuses}")
            return PAGES_PER_TURN / seconds

        costs = {kind: _costs(handler, kind, articles[0]) for kind in KINDS}
        for kind in KINDS:
            throughput(kind)
        figures = alternate({kind: partial(throughput, kind) for kind in KINDS}, turns=turns)
        _close_connections(threads)
    processor = {kind: median(of) for kind, of in processor_seconds.items()}
    _print(alias, figures, costs, processor)
    return [
        Target(
            what=f"{alias}: pages per second of processor time with {source} / with {BARE}",
            ratio=processor["bare"] / processor[kind],
            at_least=LEAST[source],
        )
        for kind, source in KINDS.items()
        if source in LEAST
    ]


def _get(handler: WSGIHandler, kind: str, article: Article) -> str:
    """Get a page as a server of WSGI does, and return its status."""
    statuses: list[str] = []
    request = RequestFactory(headers=BROWSER).get(f"/{kind}/{article.pk}/")
    response = handler(request.environ, lambda status, *args: statuses.append(status))
    b"".join(response)
    return statuses[0]


def _costs(handler: WSGIHandler, kind: str, article: Article) -> tuple[int, int]:
    """Count the queries and round trips of a page that has been shown before."""
    for _ in range(2):
        _get(handler, kind, article)
    with CaptureQueriesContext(connection) as queries, sends() as sent:
        _get(handler, kind, article)
    return len(queries), sent()


def _close_connections(threads: ThreadPoolExecutor) -> None:
    for _ in range(THREADS):
        threads.submit(connections.close_all).result()


def _print(
    alias: str,
    figures: Mapping[str, float],
    costs: Mapping[str, tuple[int, int]],
    processor_seconds: Mapping[str, float],
) -> None:
    rows = [
        [
            source,
            thousands(figures[kind]),
            f"{figures[kind] / figures['plain']:.2f}",
            f"{processor_seconds[kind] * 1000:.2f} ms",
            *map(str, costs[kind]),
        ]
        for kind, source in KINDS.items()
    ]
    columns = ["", "pages/s", "share", "processor", "SQL", "round trips"]
    print_table(f"Pages per second, {alias}", columns, rows)
