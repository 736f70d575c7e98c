"""Records made-up traffic through django_hitcount, each visit with a request and on its own day."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from blog.models import Article, Page
from blog.views import ArticleListView
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone

from demo.made_up_visits import BROWSERS, DAYS, Readable, Visit, make_visits
from django_hitcount import compact_hits, flush_hits, record_hit, record_hits

DOWNLOAD_SHARE = 0.06
APPLAUSE_SHARE = 0.04
VISITS_PER_ABOUT_PAGE = 25


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A program that requests every page once a day, and what its hits are refused for."""

    hour: int
    user_agent: str
    method: str = "GET"
    purpose: str = ""


UNCOUNTED = (
    Uncounted(3, "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"),
    Uncounted(5, "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"),
    Uncounted(6, "curl/8.14.1"),
    Uncounted(7, BROWSERS[1], purpose="prefetch"),
    Uncounted(9, BROWSERS[0], method="HEAD"),
)


def record_traffic() -> int:
    """Record the visits of some weeks, up to this moment. Return how many there were."""
    now = timezone.localtime()
    articles = {article.path: article for article in Article.objects.all()}
    readables = rank(article for article in articles.values() if article.path)
    visits = 0
    for days_ago in range(DAYS, -1, -1):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days_ago)
        made_up = make_visits(midnight, days_ago=days_ago, articles=readables)
        until_now = [visit for visit in made_up if visit.at <= now]
        _record_visits(until_now, articles)
        _record_other_counters(until_now, articles, midnight)
        _record_uncounted(articles.values(), midnight, now)
        visits += len(until_now)
    flush_hits()
    compact_hits()
    return visits


def rank(articles: Iterable[Article]) -> list[Readable]:
    """Rank the articles by chance, but always in the same way."""
    shuffled = sorted(articles, key=lambda article: article.path)
    random.Random("count").shuffle(shuffled)
    return [
        Readable(article.path, article.published_at, number)
        for number, article in enumerate(shuffled, 1)
    ]


def _record_visits(visits: Iterable[Visit], articles: Mapping[str, Article]) -> None:
    about = Page.objects.get(slug="about")
    for number, visit in enumerate(visits, 1):
        read = [articles[path] for path in visit.paths]
        request = make_request(visit.user_agent, address=visit.address)
        record_hits(read, request, at=visit.at, amount=visit.hits)
        if number % VISITS_PER_ABOUT_PAGE == 0:
            record_hit(about, request, at=visit.at)


def _record_other_counters(
    visits: Iterable[Visit], articles: Mapping[str, Article], midnight: datetime
) -> None:
    """Record what readers did besides reading: it has no visitors, so one call takes many hits."""
    chance = random.Random(midnight.toordinal())
    sums: dict[str, Counter[Model]] = defaultdict(Counter)
    listed = _listed_on(articles.values(), midnight)
    for visit in visits:
        if "" in visit.paths:
            sums["impressions"].update(listed)
        for path in filter(None, visit.paths):
            sums["downloads"][articles[path]] += chance.random() < DOWNLOAD_SHARE
            sums["applause"][articles[path]] += chance.random() < APPLAUSE_SHARE
    for counter, hits in sums.items():
        for obj, amount in (+hits).items():
            record_hit(obj, counter=counter, amount=amount, at=midnight)


def _listed_on(articles: Iterable[Article], day: datetime) -> list[Article]:
    """Return the articles on the first page of the list."""
    listed = [article for article in articles if article.path and article.published_at <= day]
    listed.sort(key=lambda article: article.published_at, reverse=True)
    return listed[: ArticleListView.paginate_by]


def _record_uncounted(articles: Iterable[Article], midnight: datetime, now: datetime) -> None:
    for program in UNCOUNTED:
        at = midnight + timedelta(hours=program.hour)
        published = [article for article in articles if article.published_at <= at <= now]
        request = make_request(program.user_agent, method=program.method, purpose=program.purpose)
        record_hits(published, request, at=at)


def make_request(
    user_agent: str, *, address: str = "192.0.2.1", method: str = "GET", purpose: str = ""
) -> HttpRequest:
    request = HttpRequest()
    request.method = method
    request.META = {"HTTP_USER_AGENT": user_agent, "REMOTE_ADDR": address}
    if purpose:
        request.META["HTTP_SEC_PURPOSE"] = purpose
    return request
