"""Querysets that are built while Django imports the URLs."""

from __future__ import annotations

from django.urls import path
from django.views.generic import ListView

from django_hitcount.models import with_visitors
from tests.app.models import Article, Plain


class ListingView(ListView):
    queryset = Article.objects.with_hits().with_hits(counter="viewz", name="viewz")


class VisitorsView(ListView):
    queryset = with_visitors(Plain.objects.all(), counter="downloads", days=7)


urlpatterns = [path("", ListingView.as_view()), path("visitors/", VisitorsView.as_view())]
