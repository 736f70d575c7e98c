from __future__ import annotations

import uuid
from typing import Any

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


class Char32UUIDField(models.UUIDField):  # type: ignore[type-arg]
    """What Django's release notes give to sites that MariaDB had no UUID type for."""

    def db_type(self, connection: Any) -> str:
        return "char(32)"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        value = super().get_db_prep_value(value, connection, prepared)
        return getattr(value, "hex", value)

    def from_db_value(self, value: Any, *args: Any) -> Any:
        return self.to_python(value)


class OldPhoto(HitCountMixin, models.Model):
    """A UUID as key, in a column of 32 digits."""

    id = Char32UUIDField(primary_key=True, default=uuid.uuid4)


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
