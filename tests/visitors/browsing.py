"""Requests of a browser, with the sessions and cookies that they come with."""

from __future__ import annotations

from importlib import import_module

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from tests.browsers import BROWSER

FIREFOX = BROWSER["user-agent"]
ENGINES = ["db", "cached_db", "cache", "file", "signed_cookies"]


def broken(request: HttpRequest) -> str | None:
    """An identity that always fails."""
    raise ZeroDivisionError


def get(address="203.0.113.9", **cookies: str) -> HttpRequest:
    """A request by Firefox."""
    request = RequestFactory(headers=BROWSER).get("/", REMOTE_ADDR=address)
    request.COOKIES = cookies
    return request


def through_middleware(request: HttpRequest) -> HttpRequest:
    """The request as a view gets it: with a session and a lazy user."""
    SessionMiddleware(lambda request: HttpResponse()).process_request(request)
    AuthenticationMiddleware(lambda request: HttpResponse()).process_request(request)
    return request


def new_session(engine="db", **data: object) -> str:
    """Store a session; returns its key."""
    store = import_module(f"django.contrib.sessions.backends.{engine}").SessionStore()
    store.update(data or {"basket": [1]})
    store.save()
    return store.session_key
