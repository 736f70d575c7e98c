from __future__ import annotations

import uuid
from copy import copy
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.contenttypes.fields import GenericForeignKey, GenericRelation
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.functional import cached_property

from django_hitcount.fields import HitCountField
from django_hitcount.models import HitCountMixin, HitCountQuerySet
from tests.app import keys  # noqa: F401 - its models are those of the app, too


class Article(HitCountMixin, models.Model):
    """The key is a big integer."""

    title = models.CharField(max_length=50)
    author = models.CharField(max_length=50, blank=True)


class Small(HitCountMixin, models.Model):
    """The key is an integer."""

    id = models.AutoField(primary_key=True)


class Photo(HitCountMixin, models.Model):
    """The key is a UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Char32UUIDField(models.UUIDField):  # type: ignore[type-arg]
    """The field that Django recommends for UUIDs from before MariaDB had a type for them."""

    def db_type(self, connection: Any) -> str:
        return "char(32)"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        value = super().get_db_prep_value(value, connection, prepared)
        return getattr(value, "hex", value)

    def from_db_value(self, value: Any, *args: Any) -> Any:
        return self.to_python(value)


class OldPhoto(HitCountMixin, models.Model):
    """The key is a UUID in a column of 32 digits."""

    id = Char32UUIDField(primary_key=True, default=uuid.uuid4)


class Page(HitCountMixin, models.Model):
    """The key is text, and may be longer than hits can be counted for."""

    path = models.CharField(primary_key=True, max_length=300)


class Plain(models.Model):
    """A model without the mixin."""

    name = models.CharField(max_length=50)


class Featured(Article):
    """A proxy; it counts as an Article."""

    class Meta:
        proxy = True


class PlainProxy(Plain):
    """A proxy of a model without the mixin."""

    class Meta:
        proxy = True


class Review(Article):
    """A child table with its parent's key: the same object, so it counts as an Article."""

    stars = models.IntegerField(default=5)


class Cover(HitCountMixin, models.Model):
    """The key is a foreign key to a UUID."""

    photo = models.OneToOneField(Photo, primary_key=True, on_delete=models.CASCADE)


class Tag(models.Model):
    """A tag has many articles, so a join or a prefetch returns an article several times."""

    articles = models.ManyToManyField(Article, related_name="tags")


class LiveQuerySet(models.QuerySet["Draft"]):
    """A queryset class that does not inherit HitCountQuerySet."""

    def live(self) -> LiveQuerySet:
        return self.filter(live=True)


class LiveManager(models.Manager.from_queryset(LiveQuerySet)):  # type: ignore[misc]
    """A default manager that hides drafts."""

    def get_queryset(self) -> LiveQuerySet:
        drafts: LiveQuerySet = super().get_queryset()
        return drafts.live()


class Draft(models.Model):
    """An abstract base with managers, and with options in its Meta."""

    live = models.BooleanField(default=False)

    objects = LiveManager()
    everything: models.Manager[Draft] = models.Manager()

    class Meta:
        abstract = True
        ordering = ["-pk"]


class Essay(HitCountMixin, Draft):
    """The mixin comes before a base with managers."""


class Poem(Draft, HitCountMixin):
    """The mixin comes after a base with managers."""


class Reader(HitCountMixin, AbstractUser):
    """A user whose views are counted."""

    groups = None  # type: ignore[assignment]
    user_permissions = None  # type: ignore[assignment]


class LiveHitCountQuerySet(HitCountQuerySet["Novel"]):
    """A queryset class that inherits HitCountQuerySet."""

    def live(self) -> LiveHitCountQuerySet:
        return self.filter(live=True)


class Novel(HitCountMixin, models.Model):
    """A model whose only manager has with_hits()."""

    live = models.BooleanField(default=False)

    published = LiveHitCountQuerySet.as_manager()

    readings = 0

    @cached_property
    def lazy_total(self) -> int:
        return self.hits


class LongReview(Review):
    """A child of a child."""


class FeaturedReview(Review):
    """A proxy of a child."""

    class Meta:
        proxy = True


class Interview(Featured):
    """A child of a proxy."""


class Event(models.Model):
    """A parent without the mixin."""

    name = models.CharField(max_length=50)


class Concert(HitCountMixin, Event):
    """A child with the mixin; receivers are connected to its parent, too."""


class FeaturedEvent(Event):
    """A proxy that is defined after receivers were connected to its parent."""

    class Meta:
        proxy = True


class Festival(Concert, Plain):
    """Two parents with tables; the key is that of the first."""


class Ticket(HitCountMixin, Event):
    """A child with its own key: another object than its event."""

    number = models.AutoField(primary_key=True)
    event = models.OneToOneField(Event, parent_link=True, on_delete=models.CASCADE)


class Remark(HitCountMixin, models.Model):
    """A remark on any object."""

    # Without a constraint: Django makes the tables of this app before those of migrations.
    content_type = models.ForeignKey(ContentType, on_delete=models.CASCADE, db_constraint=False)
    object_id = models.PositiveIntegerField()
    target = GenericForeignKey()


class Section(models.Model):
    """Stories have a section, which has remarks."""

    name = models.CharField(max_length=50, blank=True)
    remarks = GenericRelation(Remark)
    essays = models.ManyToManyField(Essay)

    class Meta:
        ordering = ["-name"]


class Story(HitCountMixin, models.Model):
    """A story of a section."""

    section = models.ForeignKey(Section, related_name="stories", on_delete=models.CASCADE)


class Reply(HitCountMixin, models.Model):
    """Its key is a UUID."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    story = models.ForeignKey(Story, related_name="replies", on_delete=models.CASCADE)


class Viewed(models.Model):
    """An abstract base with a column that holds a total."""

    views = HitCountField()

    class Meta:
        abstract = True


class Recipe(HitCountMixin, Viewed):
    """Two columns with totals, and one that each save changes."""

    title = models.CharField(max_length=50)
    saved_at = models.DateTimeField(auto_now=True)
    downloads = HitCountField(db_index=False)


class RecipeHistory(models.Model):
    """
    Old states of recipes, as apps for history make such a model: with the fields of the other one.

    One app copies a field with all that its model has given it, another one makes it anew.
    """

    history_id = models.AutoField(primary_key=True)
    id = models.BigIntegerField(db_index=True)
    title = models.CharField(max_length=50)
    views = copy(Recipe._meta.get_field("views"))
    downloads = Recipe._meta.get_field("downloads").clone()


class Dessert(Recipe):
    """A child with its parent's key: its columns are those of the parent."""

    sweetness = models.IntegerField(default=1)


class Dish(HitCountMixin, Viewed):
    """The key is a UUID in a column of 32 digits."""

    id = Char32UUIDField(primary_key=True, default=uuid.uuid4)


class Menu(HitCountMixin, Viewed):
    """The key is text."""

    path = models.CharField(primary_key=True, max_length=300)


class Translation(HitCountMixin, models.Model):
    """Its hits are those of the article; without one, they are its own."""

    article = models.ForeignKey(Article, null=True, on_delete=models.SET_NULL)

    def hit_count_object(self) -> models.Model:
        return self.article or self
