"""Pages of all types, to look at: as in docs/wagtail.rst."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from wagtail.models import Page

from django_hitcount.admin import HitCountAdmin


@admin.register(Page)
class PageAdmin(HitCountAdmin, admin.ModelAdmin):
    search_fields = ["title"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
