"""The model that is counted, and plain counters to compare slots with."""

from __future__ import annotations

from django.db import models
from django_visit_count.mixins import VisitCountMixin

from django_hitcount.fields import HitCountField
from django_hitcount.models import HitCountMixin


class Article(HitCountMixin, VisitCountMixin, models.Model):
    """Counted by django_hitcount and by both other apps."""

    title = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.title


class Story(HitCountMixin, models.Model):
    """One of a million objects that are ranked and listed."""

    title = models.CharField(max_length=50)
    views_total = HitCountField()

    def __str__(self) -> str:
        return self.title


class Row(models.Model):
    """A counter as most people write it by hand."""

    hits = models.BigIntegerField(default=0)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.hits} hits"


class Total(Row):
    """The one row of an article."""

    article = models.OneToOneField(Article, primary_key=True, on_delete=models.CASCADE)


class DailyTotal(Row):
    """The one row of an article on one day."""

    article = models.OneToOneField(Article, primary_key=True, on_delete=models.CASCADE)


class OwnTotal(Row):
    """A row that only one writer writes."""

    article = models.ForeignKey(Article, on_delete=models.CASCADE)
