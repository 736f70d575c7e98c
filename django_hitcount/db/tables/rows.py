"""Columns that several tables have in common."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.db.fields import ObjectIdField


class ModelRow(models.Model):
    """A row about a model, or about one of its objects."""

    content_type = models.ForeignKey(
        ContentType,
        on_delete=models.CASCADE,
        related_name="+",
        # A unique constraint or an index starts with it. Not so in StaleTotal, but that has few
        # rows: compact_hits deletes them once it has written the totals.
        db_index=False,
        verbose_name=_("content type"),
    )

    class Meta:
        abstract = True


class CounterRow(ModelRow):
    """A row about one counter of one object."""

    object_id = ObjectIdField(_("object id"), max_length=conf.OBJECT_ID_MAX_LENGTH)
    counter = models.CharField(_("counter"), max_length=conf.COUNTER_MAX_LENGTH)

    KEY: ClassVar[tuple[str, ...]] = ("content_type_id", "object_id", "counter")
    """Columns that have the same value in all rows of a counter."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.counter} of {self.content_type_id}:{self.object_id}"


class SlotRow(models.Model):
    """One of several rows that share a sum, so that writers do not wait for a single row."""

    slot = models.SmallIntegerField(_("slot"))
    hits = models.BigIntegerField(_("hits"))
    is_compacted = models.GeneratedField(
        expression=models.ExpressionWrapper(models.Q(slot=0), models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
        verbose_name=_("is compacted"),
    )
    """
    Whether the row is in slot 0.

    An index that has this column before ``hits`` sorts the rows of slot 0, and apart from them all
    others, by hits. MySQL and MariaDB have no partial indexes that could do so.
    """

    KEY: ClassVar[tuple[str, ...]]
    """Columns that have the same value in all rows of a sum."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{super().__str__()}, slot {self.slot}"


class HitRow(SlotRow, CounterRow):
    """One of the rows that add up to hits of a counter."""

    class Meta:
        abstract = True
