"""Serve pages continuously while something happens."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from django.db import connections
from django.http import HttpRequest
from django.template import Context, Template
from django.test import RequestFactory

from benchmarks.app.models import Article
from django_hitcount.recording import record_hit
from tests.browsers import BROWSER

THREADS = 8
THINK_SECONDS = 0.05
"""Pause between two pages of a thread, so that the site is not at its limit."""


class View(NamedTuple):
    """A page that was served."""

    began_at: float
    ended_at: float
    lost: int
    """Hits that were refused."""

    @property
    def seconds(self) -> float:
        return self.ended_at - self.began_at


class Phases(NamedTuple):
    """How long to serve pages before, during and after what happens, in seconds."""

    before: float
    during: float
    after: float


@dataclass(kw_only=True)
class Served:
    """The pages that were served."""

    seconds: list[float]
    """How long each page took that was served while something happened, in order."""

    hits: int
    """Hits on all pages, also before and after."""

    lost_after: int
    """Refused hits of pages that began when all servers were back."""

    def quantile(self, share: float) -> float:
        return self.seconds[min(int(share * len(self.seconds)), len(self.seconds) - 1)]


@dataclass(kw_only=True)
class Pages:
    """A page with a tag for each of several articles, served by several threads."""

    tag: str
    articles: Sequence[Article]
    tags: int
    """How many articles a page shows, chosen at random."""

    views: list[View] = field(default_factory=list)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def serve(self, fault: AbstractContextManager[object], phases: Phases) -> Served:
        with ThreadPoolExecutor(THREADS) as threads:
            jobs = [threads.submit(self._serve) for _ in range(THREADS)]
            try:
                time.sleep(phases.before)
                with fault:
                    began_at = time.monotonic()
                    time.sleep(phases.during)
                    ended_at = time.monotonic()
                back_at = time.monotonic()
                time.sleep(phases.after)
            finally:
                self._is_over.set()
        for job in jobs:
            job.result()  # Raises what a page has raised.
        meanwhile = [v for v in self.views if began_at < v.ended_at and v.began_at < ended_at]
        return Served(
            seconds=sorted(view.seconds for view in meanwhile),
            hits=len(self.views) * self.tags,
            lost_after=sum(view.lost for view in self.views if view.began_at >= back_at),
        )

    def _serve(self) -> None:
        template = Template(
            "{% load hitcount %}{% for article in articles %}" + self.tag + "{% endfor %}"
        )
        while not self._is_over.wait(THINK_SECONDS):
            request = RequestFactory(headers=BROWSER).get("/")
            articles = random.sample(self.articles, self.tags)
            context = Context({"articles": articles, "request": request})
            began_at = time.monotonic()
            template.render(context)
            ended_at = time.monotonic()
            self.views.append(View(began_at, ended_at, self._lost(request, articles)))
        connections.close_all()

    def _lost(self, request: HttpRequest, articles: Sequence[Article]) -> int:
        """Count the hits of a page that were lost: record_hit() returns the same Hit again."""
        if "hit_count" not in self.tag:
            return 0
        return sum(
            not record_hit(article, request, once_per_request=True).counted for article in articles
        )
