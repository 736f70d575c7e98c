"""What is counted, and the counters that slots are measured against."""

from __future__ import annotations

from django.db import models
from django_visit_count.mixins import VisitCountMixin

from django_hitcount.models import HitCountMixin


class Article(HitCountMixin, VisitCountMixin, models.Model):
    """Counted by this app and by both peers."""

    title = models.CharField(max_length=50)

    def __str__(self) -> str:
        return self.title


class Row(models.Model):
    """A counter as it is mostly written by hand."""

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
