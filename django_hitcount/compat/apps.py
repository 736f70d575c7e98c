"""The app ``django_hitcount.compat``: the tags and static files of django-hitcount."""

from __future__ import annotations

from django.apps import AppConfig


class CompatConfig(AppConfig):
    name = "django_hitcount.compat"
    label = "django_hitcount_compat"
