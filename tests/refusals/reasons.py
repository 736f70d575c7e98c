"""Requests of browsers, and the reason why their hits do not count."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import AnonymousUser
from django.db.models import Model
from django.http import HttpRequest
from django.test import RequestFactory

from django_hitcount.refusals.registry import GivenRefusal, HitContext, check_refusals, find_refusal
from tests.app.models import Article
from tests.browsers import BROWSER

BUILT_IN = "django_hitcount.refusals."


def get(path: str = "/", user: object = None, **headers: str) -> HttpRequest:
    """A request by a browser; without a user, by an anonymous one."""
    request = RequestFactory(headers={**BROWSER, **headers}).get(path)
    request.user = AnonymousUser() if user is None else user
    return request


def reason(
    request: HttpRequest,
    obj: Model | None = None,
    *,
    refusals: Iterable[GivenRefusal] | None = None,
) -> str | None:
    """Why the hit of a request does not count; None if it does."""
    given = None if refusals is None else check_refusals(refusals)
    return find_refusal(HitContext(request, obj or Article(pk=1), "views"), given)
