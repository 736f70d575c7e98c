"""Count a hit and read the total with other apps, as their documentation says."""

from __future__ import annotations

import itertools
from functools import partial
from importlib.metadata import version

from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.test import RequestFactory
from hitcount.utils import get_hitcount_model
from hitcount.views import HitCountMixin

from benchmarks.app.models import Article
from benchmarks.timing import Subject

HITCOUNT = f"django-hitcount {version('django-hitcount')}"
VISIT_COUNT = f"django-visit-count {version('django-visit-count')}"

WITH_SESSION = f"{HITCOUNT}: new visitor with a session"
REPEAT = f"{HITCOUNT}: repeat visitor"

_addresses = itertools.count(1)


def new_request(*, session: SessionStore | None = None, address: str = "10.0.0.1") -> HttpRequest:
    request = RequestFactory().get("/", REMOTE_ADDR=address, HTTP_USER_AGENT="Mozilla/5.0")
    request.user = AnonymousUser()
    request.session = session or SessionStore()
    return request


def django_hitcount(article: Article, request: HttpRequest) -> int:
    """Do what its HitCountDetailView does: the cheapest way that its documentation shows."""
    hit_count = get_hitcount_model().objects.get_for_object(article)
    total: int = hit_count.hits
    response = HitCountMixin.hit_count(request, hit_count)
    return total + 1 if response.hit_counted else total


def django_visit_count(article: Article, request: HttpRequest) -> int:
    """Do what its README does. A total that has changed is an expression until it is read again."""
    article.count_visit(request)
    if not isinstance(article.visit_count, int):
        article.refresh_from_db(fields=["visit_count"])
    return article.visit_count


def saved_session() -> SessionStore:
    session = SessionStore()
    session.create()
    return session


def another_address() -> str:
    number = next(_addresses)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def subjects(article: Article) -> list[Subject]:
    """Both apps, with visitors that cost them different amounts of work."""
    regular = saved_session()
    by_session = partial(django_hitcount, article)
    by_address = partial(django_visit_count, article)
    return [
        Subject(
            name=f"{HITCOUNT}: visitor without a session",
            prepare=new_request,
            run=by_session,
        ),
        Subject(
            name=WITH_SESSION,
            prepare=lambda: new_request(session=saved_session()),
            run=by_session,
        ),
        Subject(
            name=REPEAT,
            prepare=lambda: new_request(session=regular),
            run=by_session,
        ),
        Subject(
            name=f"{VISIT_COUNT}: new visitor",
            prepare=lambda: new_request(address=another_address()),
            run=by_address,
        ),
        Subject(
            name=f"{VISIT_COUNT}: repeat visitor",
            prepare=new_request,
            run=by_address,
        ),
    ]
