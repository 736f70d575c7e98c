"""The lists of the admin that are measured."""

from __future__ import annotations

from django.contrib import admin

from benchmarks.app.models import Story


@admin.register(Story)
class StoryAdmin(admin.ModelAdmin):
    list_display = ("id", "title", "views_total")
