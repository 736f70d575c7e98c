from __future__ import annotations

from django.contrib import admin

from blog.models import Article, Page
from django_hitcount.admin import HitCountAdmin


@admin.register(Article)
class ArticleAdmin(HitCountAdmin, admin.ModelAdmin):
    """Its list has a column of hits, and each article a page of statistics."""

    list_display = ["title", "path", "published_at", "hits_column"]
    search_fields = ["title", "path"]
    date_hierarchy = "published_at"

    def objects_before(self, request, obj):
        """Compare an article with the one that was published before it."""
        earlier = self.get_queryset(request).filter(published_at__lt=obj.published_at)
        return earlier.order_by("-published_at")


@admin.register(Page)
class PageAdmin(HitCountAdmin, admin.ModelAdmin):
    list_display = ["title", "slug", "hits_column"]
