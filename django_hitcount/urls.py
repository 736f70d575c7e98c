"""
The addresses that cached pages send their hits to. Include them under any prefix::

    path("seen/", include("django_hitcount.urls")),
"""

from __future__ import annotations

from django.urls import path

from django_hitcount.views import count_image, count_views

app_name = "django_hitcount"

urlpatterns = [
    path("", count_views, name="count_views"),
    path("<str:token>.gif", count_image, name="count_image"),
]
