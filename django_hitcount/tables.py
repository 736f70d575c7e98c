"""The tables."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.fields import ObjectIdField, SlotIndex


class CounterRow(models.Model):
    """A row about one counter of one object."""

    content_type = models.ForeignKey(
        ContentType,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,  # The unique constraint starts with it.
        verbose_name=_("content type"),
    )
    object_id = ObjectIdField(_("object id"), max_length=conf.OBJECT_ID_MAX_LENGTH)
    counter = models.CharField(_("counter"), max_length=conf.COUNTER_MAX_LENGTH)

    KEY: ClassVar[tuple[str, ...]] = ("content_type_id", "object_id", "counter")
    """Columns that rows of one counter have in common."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.counter} of {self.content_type_id}:{self.object_id}"


class SlotRow(models.Model):
    """One of several rows that share a sum, so that writers do not queue for one of them."""

    slot = models.SmallIntegerField(_("slot"))
    hits = models.BigIntegerField(_("hits"))

    KEY: ClassVar[tuple[str, ...]]
    """Columns that rows of one sum have in common."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{super().__str__()}, slot {self.slot}"


class HitSlot(SlotRow, CounterRow):
    """One of the rows whose sum is the all-time total of a counter."""

    KEY = CounterRow.KEY

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


class DailyHitSlot(SlotRow, CounterRow):
    """One of the rows whose sum is what a counter took in on one day."""

    day = models.DateField(_("day"))

    KEY = (*CounterRow.KEY, "day")

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
    partition = models.SmallIntegerField(_("partition"))
    generation = models.CharField(_("generation"), max_length=conf.GENERATION_MAX_LENGTH)
    number = models.BigIntegerField(_("number"))
    """Batches of one partition and generation are applied in the order of their numbers."""

    class Meta:
        verbose_name = _("flushed batch")
        verbose_name_plural = _("flushed batches")
        constraints = [
            models.UniqueConstraint(
                fields=["partition", "generation", "number"], name="hitcount_flushedbatch_number"
            ),
        ]
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
    run_id = models.CharField(_("run of Redis"), max_length=conf.RUN_ID_MAX_LENGTH, editable=False)
    hits = models.JSONField(_("hits"), editable=False)
    missed_at = models.DateTimeField(_("missed at"), default=timezone.now)

    class Meta:
        verbose_name = _("missed record")
        verbose_name_plural = _("missed records")

    def __str__(self) -> str:
        return f"{len(self.hits)} hits missed at {self.missed_at}"


class DeletedObject(models.Model):
    """
    An object that was deleted, kept until nothing is left of its hits and visitors.

    Written in the transaction that deletes the object, if that is in the same database.
    Without a foreign key, so that it locks no row of another table.
    """

    content_type_id = models.IntegerField(_("content type id"))
    object_id = ObjectIdField(_("object id"), max_length=conf.OBJECT_ID_MAX_LENGTH)
    database = models.CharField(_("database"), max_length=conf.DATABASE_ALIAS_MAX_LENGTH)
    """The one that the object was deleted from."""

    saved_in = models.CharField(
        _("saved in"), max_length=conf.DATABASE_ALIAS_MAX_LENGTH, blank=True
    )
    """The one that it was read from or saved to last; another one if it was moved."""

    deleted_at = models.DateTimeField(_("deleted at"), default=timezone.now)
    due_at = models.DateTimeField(_("due at"), default=timezone.now)
    """When to look at it next."""

    swept_at = models.DateTimeField(_("swept at"), null=True)
    """When all was gone that had been counted before it was deleted."""

    class Meta:
        verbose_name = _("deleted object")
        verbose_name_plural = _("deleted objects")
        indexes = [
            models.Index(fields=["content_type_id", "object_id"], name="hitcount_deleted_object"),
            models.Index(fields=["due_at"], name="hitcount_deleted_due"),
        ]

    def __str__(self) -> str:
        return f"{self.content_type_id}:{self.object_id}, deleted at {self.deleted_at}"

    @property
    def pair(self) -> tuple[int, str]:
        """Content type id and object id."""
        return self.content_type_id, self.object_id


class RefusedHitSlot(SlotRow):
    """One of the rows whose sum is how many hits were refused on one day for one reason."""

    day = models.DateField(_("day"))
    counter = models.CharField(_("counter"), max_length=conf.COUNTER_MAX_LENGTH)
    refusal = models.CharField(_("refusal"), max_length=conf.REFUSAL_MAX_LENGTH)

    KEY = ("day", "counter", "refusal")

    class Meta:
        verbose_name = _("refused hit slot")
        verbose_name_plural = _("refused hit slots")
        constraints = [
            models.UniqueConstraint(
                fields=["day", "counter", "refusal", "slot"], name="hitcount_refusedhitslot_key"
            ),
        ]
        indexes = [
            SlotIndex(
                compacted=False,
                fields=["slot", "day", "counter", "refusal"],
                name="hitcount_refused_compact",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.counter} refused for {self.refusal!r} on {self.day}, slot {self.slot}"


class DailyVisitors(CounterRow):
    """How many visitors a counter had on one day, under one visitor key."""

    day = models.DateField(_("day"))
    visitor_key = models.CharField(_("visitor key"), max_length=conf.VISITOR_KEY_MAX_LENGTH)
    count = models.BigIntegerField(_("visitors"))
    sketch = models.BinaryField(_("sketch"), null=True)
    """Redis's HyperLogLog of the visitors; none if they were counted one by one."""

    KEY = (*CounterRow.KEY, "day", "visitor_key")

    class Meta:
        verbose_name = _("daily visitors")
        verbose_name_plural = _("daily visitors")
        constraints = [
            models.UniqueConstraint(
                fields=["content_type", "object_id", "counter", "day", "visitor_key"],
                name="hitcount_dailyvisitors_key",
            ),
        ]

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.count} visitors on {self.day}"


class SeenVisitor(CounterRow):
    """
    A visitor of a counter on one day, for as long as the day is open.

    ``visitor`` is a keyed hash of the visitor *and* the counter: rows of one visitor on
    two objects have nothing in common, not even that their primary keys follow each other.
    """

    day = models.DateField(_("day"))
    visitor_key = models.CharField(_("visitor key"), max_length=conf.VISITOR_KEY_MAX_LENGTH)
    visitor = models.CharField(_("visitor"), max_length=32, editable=False)
    """128 bits in hexadecimal: MariaDB takes but a part of them for a UUID."""

    KEY = DailyVisitors.KEY

    class Meta:
        verbose_name = _("seen visitor")
        verbose_name_plural = _("seen visitors")
        constraints = [
            models.UniqueConstraint(
                fields=["content_type", "object_id", "counter", "day", "visitor"],
                name="hitcount_seenvisitor_key",
            ),
        ]
        indexes = [models.Index(fields=["day"], name="hitcount_seenvisitor_day")]

    def __str__(self) -> str:
        return f"a visitor of {super().__str__()} on {self.day}"


class VisitorSalt(models.Model):
    """The random half of a visitor key; the other half is SECRET_KEY. Deleted once it is old."""

    period = models.CharField(_("period"), max_length=conf.VISITOR_KEY_MAX_LENGTH, primary_key=True)
    salt = models.BinaryField(_("salt"), editable=False)
    made_at = models.DateTimeField(_("made at"), default=timezone.now)

    class Meta:
        verbose_name = _("visitor salt")
        verbose_name_plural = _("visitor salts")

    def __str__(self) -> str:
        return self.period


class Admission(models.Model):
    """When a throttle last admitted somebody, by the clock of the database."""

    name = ObjectIdField(_("name"), max_length=conf.ADMISSION_NAME_MAX_LENGTH, primary_key=True)
    admitted_at = models.BigIntegerField(_("admitted at"))
    """In microseconds since 1970."""

    expires_at = models.BigIntegerField(_("expires at"))
    """When the interval is over and the row says nothing any more."""

    class Meta:
        verbose_name = _("admission")
        verbose_name_plural = _("admissions")
        indexes = [models.Index(fields=["expires_at"], name="hitcount_admission_expires")]

    def __str__(self) -> str:
        return str(self.name)


class CountedAddress(models.Model):
    """
    How many hits of one address a counter counted in one interval, while that is open.

    The name is the last day of the interval and a keyed hash of the address, the interval, the
    object *and* the counter: two rows of one address have nothing in common.
    """

    name = ObjectIdField(_("name"), max_length=conf.ADDRESS_NAME_LENGTH, primary_key=True)
    hits = models.BigIntegerField(_("hits"))

    class Meta:
        verbose_name = _("counted address")
        verbose_name_plural = _("counted addresses")

    def __str__(self) -> str:
        return str(self.name)
