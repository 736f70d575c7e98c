"""The tables of hits, and the columns that other tables have, too."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.db.fields import ObjectIdField, SlotIndex


def unique(table: str, *fields: str) -> models.UniqueConstraint:
    """Return the constraint of the key of a table."""
    return models.UniqueConstraint(fields=fields, name=f"hitcount_{table}_key")


class Row(models.Model):
    """A row of one of our tables. Its key says what it is about."""

    KEY: ClassVar[tuple[str, ...]]
    """The columns that say so."""

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return ", ".join(str(getattr(self, column)) for column in self.KEY)


class ModelRow(Row):
    """A row about a model, or about one of its objects."""

    content_type = models.ForeignKey(
        ContentType,
        on_delete=models.CASCADE,
        related_name="+",
        # A unique constraint or an index starts with it. Not so in StaleTotal, but that has few
        # rows: compact_hits deletes them once it has written the totals.
        db_index=False,
    )

    class Meta(Row.Meta):
        abstract = True


class CounterRow(ModelRow):
    """A row about one counter of one object."""

    object_id = ObjectIdField(max_length=conf.OBJECT_ID_MAX_LENGTH)
    counter = models.CharField(_("counter"), max_length=conf.COUNTER_MAX_LENGTH)

    KEY: ClassVar[tuple[str, ...]] = ("content_type_id", "object_id", "counter")

    class Meta(Row.Meta):
        abstract = True


class SlotRow(Row):
    """One of several rows that share a sum, so that writers do not wait for a single row."""

    slot = models.SmallIntegerField()
    hits = models.BigIntegerField()
    is_compacted = models.GeneratedField(
        expression=models.ExpressionWrapper(models.Q(slot=0), models.BooleanField()),
        output_field=models.BooleanField(),
        db_persist=True,
    )
    """
    Whether the row is in slot 0.

    An index that has this column before ``hits`` sorts the rows of slot 0, and apart from them all
    others, by hits. MySQL and MariaDB have no partial indexes that could do so.
    """

    class Meta(Row.Meta):
        abstract = True


class HitRow(SlotRow, CounterRow):
    """One of the rows that add up to hits of a counter."""

    class Meta(Row.Meta):
        abstract = True


class HitSlot(HitRow):
    """One of the rows that add up to the all-time total of a counter."""

    class Meta(Row.Meta):
        verbose_name = _("hits")
        verbose_name_plural = _("hits")
        permissions = [("view_hitslot", "Can view the report of hits")]
        constraints = [unique("hitslot", "content_type", "object_id", "counter", "slot")]
        indexes = [
            models.Index(
                fields=["content_type", "counter", "is_compacted", "hits"],
                name="hitcount_hitslot_most",
            ),
            SlotIndex(
                fields=["is_compacted", "content_type", "object_id", "counter", "slot"],
                name="hitcount_hitslot_compact",
                has_hits=True,
            ),
            SlotIndex(fields=["is_compacted", "slot"], name="hitcount_hitslot_slot"),
        ]


class DailyHitSlot(HitRow):
    """One of the rows that add up to the hits of a counter on one day."""

    day = models.DateField()

    KEY = (*CounterRow.KEY, "day")

    class Meta(Row.Meta):
        constraints = [
            unique("dailyhitslot", "content_type", "object_id", "counter", "day", "slot")
        ]
        indexes = [
            models.Index(
                fields=["content_type", "counter", "day", "is_compacted", "hits"],
                name="hitcount_daily_most",
            ),
            SlotIndex(
                fields=["is_compacted", "content_type", "object_id", "counter", "day", "slot"],
                name="hitcount_daily_compact",
                has_hits=True,
            ),
        ]


class DailyModelHits(ModelRow):
    """
    The hits of all objects of a model on one day, as far as they are in slot 0.

    A compaction adds to this row in the transaction that folds rows into slot 0, so a hit never
    waits for it.
    """

    counter = models.CharField(max_length=conf.COUNTER_MAX_LENGTH)
    day = models.DateField()
    hits = models.BigIntegerField()

    KEY = ("content_type_id", "counter", "day")

    class Meta(Row.Meta):
        constraints = [unique("dailymodelhits", "content_type", "counter", "day")]


class RefusedHitSlot(SlotRow):
    """One of the rows that add up to the hits refused on one day for one reason."""

    day = models.DateField()
    counter = models.CharField(max_length=conf.COUNTER_MAX_LENGTH)
    refusal = models.CharField(max_length=conf.REFUSAL_MAX_LENGTH)

    KEY = ("day", "counter", "refusal")

    class Meta(Row.Meta):
        constraints = [unique("refusedhitslot", "day", "counter", "refusal", "slot")]
        indexes = [
            SlotIndex(
                fields=["is_compacted", "day", "counter", "refusal", "slot"],
                name="hitcount_refused_compact",
            ),
        ]
