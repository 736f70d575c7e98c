"""How a URL of an access log becomes the object that its page shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied, SuspiciousOperation
from django.db.models import Model
from django.http import Http404, HttpRequest, QueryDict
from django.urls import resolve
from django.utils import translation
from django.views.generic import DetailView

from django_hitcount import conf
from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.keys import ObjectKey
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.rows import Findings

REMEMBERED_URLS = 10_000
"""Paths whose objects are kept in memory: those that were requested last. An object may be large,
such as an article with its text."""

NO_OBJECT = "no object at the URL"

NOT_FOUND = (Http404, ObjectDoesNotExist, PermissionDenied, SuspiciousOperation)
"""What a view raises if a page is not there, or not for everyone. Resolver404 is a Http404."""

Resolver = Callable[[HttpRequest], Model | None]
"""Returns the object that the page of a request shows, or None."""


def find_object(request: HttpRequest) -> Model | None:
    """
    Return the object of a page that a DetailView shows, as the URLconf says; None for others.

    Sets ``request.resolver_match``. Calls the view's ``get_object()``, so a page that the view does
    not show has no object.
    """
    request.resolver_match = match = resolve(request.path_info)
    view_class = getattr(match.func, "view_class", None)
    if not isinstance(view_class, type) or not issubclass(view_class, DetailView):
        return None
    view = view_class(**getattr(match.func, "view_initkwargs", {}))
    view.setup(request, *match.args, **match.kwargs)
    found: Model | None = view.get_object()
    return found


class Found(NamedTuple):
    """The object of a URL."""

    obj: Model
    key: ObjectKey


class ObjectsOfUrls:
    """Finds the objects of URLs. Looks a path up once while it is remembered."""

    def __init__(self, resolver: str | None, findings: Findings) -> None:
        self._resolver: Resolver = _load(resolver) if resolver else find_object
        self._findings = findings
        self._known: dict[str, Found | None] = {}

    def find(self, url: str, place: str, request: HttpRequest) -> Found | None:
        """
        Make ``request`` one for a URL, and return the object of its page. None if it has none.

        The query of the URL is in ``request.GET``, but pages that differ in it alone are one.
        """
        path, _, query = url.partition("#")[0].partition("?")
        request.path = request.path_info = unquote(path)
        request.META |= {"PATH_INFO": request.path, "QUERY_STRING": query}
        request.method = request.method or "GET"
        if query:
            request.GET = QueryDict(query)
        found = self._known.pop(path) if path in self._known else self._look_up(request, place)
        self._known[path] = found
        if len(self._known) > REMEMBERED_URLS:
            del self._known[next(iter(self._known))]
        if found is None:
            self._findings.skipped[NO_OBJECT] += 1
        return found

    def _look_up(self, request: HttpRequest, place: str) -> Found | None:
        language = translation.get_language_from_path(request.path_info)
        try:
            with translation.override(language or translation.get_language()):
                obj = self._resolver(request)
            return Found(obj, counter_key(obj, counter=DEFAULT_COUNTER)[:2]) if obj else None
        except NOT_FOUND:
            return None
        except Exception as exc:  # noqa: BLE001 - it is a view or a function of the project
            text = f"the view of {request.path!r} raised {type(exc).__name__}: {exc}"
            self._findings.add_problem(place, text)
            return None


def _load(path: str) -> Resolver:
    try:
        return conf.load_function(path)
    except (ImportError, ValueError) as exc:
        raise InvalidArgument(
            f"Invalid resolver: {path!r} cannot be used: {exc}. Name a function that takes a "
            "request and returns an object, or None."
        ) from exc
