from __future__ import annotations

import uuid

from django.db import models

from django_hitcount.models import HitCountMixin


class Article(HitCountMixin, models.Model):
    """A big integer as key."""

    title = models.CharField(max_length=50)
    author = models.CharField(max_length=50, blank=True)


class Small(HitCountMixin, models.Model):
    """An integer as key."""

    id = models.AutoField(primary_key=True)


class Photo(HitCountMixin, models.Model):
    """A UUID as key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Page(HitCountMixin, models.Model):
    """A string as key, longer than hits can be counted for."""

    path = models.CharField(primary_key=True, max_length=300)


class Plain(models.Model):
    """No mixin."""

    name = models.CharField(max_length=50)


class Featured(Article):
    """A proxy: counts as an Article."""

    class Meta:
        proxy = True


class PlainProxy(Plain):
    """A proxy of a model without the mixin."""

    class Meta:
        proxy = True


class Review(Article):
    """A child table of its own: counts as a Review."""

    stars = models.IntegerField(default=5)


class Cover(HitCountMixin, models.Model):
    """A key that is a foreign key to a UUID."""

    photo = models.OneToOneField(Photo, primary_key=True, on_delete=models.CASCADE)
