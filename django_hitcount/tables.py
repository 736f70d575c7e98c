"""The tables."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.fields import ObjectIdField, SlotIndex


class SlotRow(models.Model):
    """What the two sharded tables share."""

    content_type = models.ForeignKey(
        ContentType,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,  # The unique constraint starts with it.
        verbose_name=_("content type"),
    )
    object_id = ObjectIdField(_("object id"), max_length=conf.OBJECT_ID_MAX_LENGTH)
    counter = models.CharField(_("counter"), max_length=conf.COUNTER_MAX_LENGTH)
    slot = models.SmallIntegerField(_("slot"))
    hits = models.BigIntegerField(_("hits"))

    KEY: ClassVar[tuple[str, ...]] = ("content_type_id", "object_id", "counter")
    """Columns that rows of one counter have in common."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.counter} of {self.content_type_id}:{self.object_id}, slot {self.slot}"


class HitSlot(SlotRow):
    """One of the rows whose sum is the all-time total of a counter."""

    class Meta:
        verbose_name = _("hit slot")
        verbose_name_plural = _("hit slots")
        constraints = [
            models.UniqueConstraint(
                fields=["content_type", "object_id", "counter", "slot"],
                name="hitcount_hitslot_key",
            ),
        ]
        indexes = [
            SlotIndex(
                compacted=True,
                fields=["content_type", "counter", "slot", "hits"],
                name="hitcount_hitslot_most",
            ),
            SlotIndex(
                compacted=False,
                fields=["slot", "content_type", "object_id", "counter"],
                name="hitcount_hitslot_compact",
            ),
        ]


class DailyHitSlot(SlotRow):
    """One of the rows whose sum is what a counter took in on one day."""

    day = models.DateField(_("day"))

    KEY = (*SlotRow.KEY, "day")

    class Meta:
        verbose_name = _("daily hit slot")
        verbose_name_plural = _("daily hit slots")
        constraints = [
            models.UniqueConstraint(
                fields=["content_type", "object_id", "counter", "day", "slot"],
                name="hitcount_dailyhitslot_key",
            ),
        ]
        indexes = [
            SlotIndex(
                compacted=False,
                fields=["slot", "content_type", "object_id", "counter", "day"],
                name="hitcount_daily_compact",
            ),
        ]

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.day}"


class FlushedBatch(models.Model):
    """The ledger: a batch in here has been applied, so a second flush of it is harmless."""

    id = models.UUIDField(primary_key=True, editable=False)
    flushed_at = models.DateTimeField(_("flushed at"), default=timezone.now)

    class Meta:
        verbose_name = _("flushed batch")
        verbose_name_plural = _("flushed batches")
        indexes = [models.Index(fields=["flushed_at"], name="hitcount_flushedbatch_at")]

    def __str__(self) -> str:
        return str(self.id)


class MissedRecord(models.Model):
    """
    Hits that Redis missed, or may have missed, kept until Redis has been told.

    Without a recorder the hits are in the slots already, and only the running totals
    in Redis are to be forgotten. With one, nobody knows whether Redis ran the command:
    it is sent again under the same number, which Redis runs once at most.
    """

    recorder = models.UUIDField(_("recorder"), null=True, editable=False)
    sequence = models.BigIntegerField(_("sequence"), null=True, editable=False)
    hits = models.JSONField(_("hits"), editable=False)
    missed_at = models.DateTimeField(_("missed at"), default=timezone.now)

    class Meta:
        verbose_name = _("missed record")
        verbose_name_plural = _("missed records")

    def __str__(self) -> str:
        return f"{len(self.hits)} hits missed at {self.missed_at}"
