"""The address of django-hitcount: ``path("hitcount/", include("django_hitcount.compat.urls"))``."""

from __future__ import annotations

from django.urls import path

from django_hitcount.compat.views import HitCountJSONView

app_name = "hitcount"

urlpatterns = [path("hit/ajax/", HitCountJSONView.as_view(), name="hit_ajax")]
