"""Views of all kinds of answers, and what was counted of them."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import admin
from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.template import RequestContext, Template
from django.urls import path, re_path
from django.views.decorators.cache import cache_page

from django_hitcount import get_hits
from django_hitcount.pages.models import Page, WholeSite


def html(request: HttpRequest, **kwargs: str) -> HttpResponse:
    response = HttpResponse("<p>tea</p>", status=int(request.GET.get("status", 200)))
    response["ETag"] = '"tea"'
    return response


async def async_html(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<p>tea</p>")


def json(request: HttpRequest) -> HttpResponse:
    return JsonResponse({}, headers={"ETag": '"tea"'})


def xhtml(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<p/>", content_type="application/xhtml+xml; charset=utf-8")


def lines() -> Iterator[str]:
    raise AssertionError("the stream is read by nobody but the server")
    yield ""


def stream(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(lines())


def missing(request: HttpRequest) -> HttpResponse:
    raise Http404


@transaction.atomic
def rolls_back(request: HttpRequest) -> HttpResponse:
    transaction.set_rollback(True)
    return HttpResponse("<p>tea</p>")


SHOWN = (
    "{% load hitcount_pages %}{% page_hits %} {% page_hits days=1 %} {% site_hits %} "
    "{% site_hits days=1 as today %}{{ today }}"
)
VISITORS = "{% load hitcount_pages %}{% page_visitors %} {% site_visitors %}"


def show(request: HttpRequest, source: str = SHOWN) -> HttpResponse:
    return HttpResponse(Template(source).render(RequestContext(request, {})))


urlpatterns = [
    path("admin/", admin.site.urls),
    path("office/", admin.site.urls),
    path("json/", json),
    path("xhtml/", xhtml),
    path("stream/", stream),
    path("missing/", missing),
    path("rolls-back/", rolls_back),
    path("async/", async_html),
    path("cached/", cache_page(300)(html)),
    path("shown/", show),
    path("visitors/", show, {"source": VISITORS}),
    re_path(r"^(?P<rest>(?!missing)[\s\S]*)\Z", html),
]


def counts(counter: str = "views") -> dict[str, int]:
    """The hits of each page by path, and those of the site as ""."""
    found = {
        page.path: hits for page, hits in get_hits(Page.objects.all(), counter=counter).items()
    }
    return {**found, "": get_hits(WholeSite(), counter=counter)}
