from __future__ import annotations

from typing import Self

from django.core.exceptions import ValidationError
from django.db import models
from django.urls import reverse
from django.utils import timezone

from blog.paths import clean_path, is_reserved, path_to_url
from django_hitcount.models import HitCountManager, HitCountMixin, HitCountQuerySet


class ArticleQuerySet(HitCountQuerySet):
    """Adds a method to with_hits() and with_visitors()."""

    def listed(self) -> Self:
        """All articles but the one at the top of the front page."""
        return self.exclude(path="")


class Article(HitCountMixin, models.Model):
    path = models.CharField(
        max_length=500,
        unique=True,
        blank=True,
        help_text="The URL path of the article. "
        "The article without a path is shown at the top of the front page.",
    )
    title = models.CharField(max_length=200)
    body = models.TextField()
    published_at = models.DateTimeField(default=timezone.now)

    objects = HitCountManager.from_queryset(ArticleQuerySet)()

    class Meta:
        ordering = ["-published_at", "-pk"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return path_to_url(self.path)

    def clean(self) -> None:
        self.path = clean_path(self.path)
        if is_reserved(self.path):
            raise ValidationError({"path": "The site uses this path itself. Choose another one."})


class Page(HitCountMixin, models.Model):
    """A page beside the blog. Its key is a string, which can be counted like a number.

    It declares no manager, so ``objects`` is the mixin's, which has with_hits().
    """

    slug = models.SlugField(primary_key=True)
    title = models.CharField(max_length=200)
    body = models.TextField()

    class Meta:
        ordering = ["title"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("blog:page", args=[self.slug])
