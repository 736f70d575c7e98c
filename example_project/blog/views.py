"""Each view shows one way of counting."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import aget_object_or_404, get_object_or_404, redirect
from django.utils.text import slugify
from django.views.decorators.http import require_POST
from django.views.generic import DetailView, ListView

from blog.models import Article, Page
from blog.paths import clean_path
from django_hitcount import arecord_hit, record_hit, record_hits
from django_hitcount.models import Counter
from django_hitcount.views import HitCountDetailMixin

ORDERS = {"newest": "Newest", "popular": "Most hits"}


class ArticleListView(ListView):
    """Many objects at once: hits, visitors and impressions cost no more than for one."""

    paginate_by = 6
    template_name = "blog/article_list.html"

    def get_queryset(self) -> QuerySet[Article]:
        articles = Article.objects.listed().with_hits().with_visitors(days=7)
        if self.order() == "popular":
            return articles.order_by("-hits", "-published_at", "-pk")
        return articles

    def order(self) -> str:
        asked = self.request.GET.get("order", "")
        return asked if asked in ORDERS else "newest"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        # Without `visited_at`, which demo/replayed_days.py sets, the hits are of today.
        at = getattr(self.request, "visited_at", None)
        record_hits(context["page_obj"], self.request, counter="impressions", at=at)
        context["popular"] = Article.objects.listed().popular(5, days=7)
        context["front"] = Article.objects.filter(path="").first()
        context["orders"] = ORDERS
        context["order"] = self.order()
        context["pages"] = context["paginator"].get_elided_page_range(context["page_obj"].number)
        return context


class ArticleView(DetailView):
    """Counted by the {% hit_count %} tag in its template: nothing to do here."""

    template_name = "blog/article_detail.html"

    def get_object(self, queryset: QuerySet[Article] | None = None) -> Article:
        return get_object_or_404(Article, path=clean_path(self.kwargs["path"]))


class CachedArticleView(DetailView):
    """A page from a cache, which runs no view: {% hit_beacon %} in its template counts it."""

    model = Article
    template_name = "blog/cached_article.html"


class PageView(HitCountDetailMixin, DetailView):
    """Counted by the mixin, which puts the Hit into the context: no tag needed."""

    model = Page
    template_name = "blog/page_detail.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(thanks=Counter("thanks"), **kwargs)


def download(request: HttpRequest, pk: int) -> HttpResponse:
    """A second counter on the same object."""
    article = get_object_or_404(Article, pk=pk)
    article.record_hit(request, counter="downloads")
    name = slugify(article.title) or "article"
    return HttpResponse(
        f"{article.title}\n\n{article.body}\n",
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.txt"'},
    )


@require_POST
async def applaud(request: HttpRequest, pk: int) -> HttpResponse:
    """An async view. It passes no request, because hits that come with a POST are refused."""
    article = await aget_object_or_404(Article, pk=pk)
    await arecord_hit(article, counter="applause")
    return redirect(f"{article.get_absolute_url()}#applause")


@require_POST
def thank(request: HttpRequest) -> HttpResponse:
    """A button is no object: it has a name, under which it is counted."""
    record_hit(Counter("thanks"))
    return redirect("blog:page", pk="about")
