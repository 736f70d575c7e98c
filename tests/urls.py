from __future__ import annotations

from django.contrib import admin
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path
from django.views.generic import DetailView

from django_hitcount.recording import arecord_hit
from django_hitcount.views import HitCountDetailMixin
from tests.app.models import Article


def article(request: HttpRequest, pk: int) -> HttpResponse:
    found = Article.objects.get(pk=pk)
    return render(request, "article.html", {"article": found})


@transaction.atomic
def rolls_back(request: HttpRequest, pk: int) -> HttpResponse:
    article(request, pk)
    raise Http404


def fails(request: HttpRequest, pk: int) -> HttpResponse:
    article(request, pk)
    raise ZeroDivisionError


@transaction.atomic
def in_transaction(request: HttpRequest, pk: int) -> HttpResponse:
    return article(request, pk)


def greeting(request: HttpRequest, pk: int) -> HttpResponse:
    response = article(request, pk)
    response.write(f"Hello {request.user}")
    return response


async def counted_async(request: HttpRequest, pk: int) -> HttpResponse:
    hit = await arecord_hit(await Article.objects.aget(pk=pk), request)
    return HttpResponse(str(hit.total))


class ArticleView(HitCountDetailMixin, DetailView):
    model = Article
    template_name = "detail.html"


class BothView(ArticleView):
    template_name = "both.html"


urlpatterns = [
    path("admin/", admin.site.urls),
    path("articles/<int:pk>/", article),
    path("rolls-back/<int:pk>/", rolls_back),
    path("fails/<int:pk>/", fails),
    path("atomic/<int:pk>/", in_transaction),
    path("greeting/<int:pk>/", greeting),
    path("async/<int:pk>/", counted_async),
    path("detail/<int:pk>/", ArticleView.as_view()),
    path("both/<int:pk>/", BothView.as_view()),
    path("seen/", include("django_hitcount.urls")),
    path("hitcount/", include("django_hitcount.compat.urls")),
]
