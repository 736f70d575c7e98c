from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from blog.models import Article, Page
from django_hitcount.admin import HitCountAdmin
from django_hitcount.models import with_visitors
from django_hitcount.unique_visitors import Visitors


@admin.register(Article)
class ArticleAdmin(HitCountAdmin, admin.ModelAdmin):
    list_display = ["title", "path", "published_at", "hits_column", "visitors"]
    search_fields = ["title", "path"]
    date_hierarchy = "published_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Article]:
        return with_visitors(super().get_queryset(request), days=7)

    @admin.display(description="visitors in 7 days")
    def visitors(self, article: Article) -> Visitors:
        return article.hit_visitors


@admin.register(Page)
class PageAdmin(HitCountAdmin, admin.ModelAdmin):
    list_display = ["title", "slug"]
