from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from blog.models import Article, Page
from django_hitcount.unique_visitors import Visitors


@admin.register(Article)
class ArticleAdmin(admin.ModelAdmin):
    list_display = ["title", "path", "published_at", "hits", "visitors", "downloads"]
    search_fields = ["title", "path"]
    date_hierarchy = "published_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Article]:
        articles = Article.objects.with_hits().with_hits(counter="downloads", name="download_total")
        return articles.with_visitors(days=7).order_by(*self.get_ordering(request))

    @admin.display(ordering="hit_total")
    def hits(self, article: Article) -> int:
        return article.hit_total

    @admin.display(description="visitors in 7 days")
    def visitors(self, article: Article) -> Visitors:
        return article.hit_visitors

    @admin.display(ordering="download_total")
    def downloads(self, article: Article) -> int:
        return article.download_total


@admin.register(Page)
class PageAdmin(admin.ModelAdmin):
    list_display = ["title", "slug"]
