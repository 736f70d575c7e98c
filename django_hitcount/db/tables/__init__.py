"""The tables, and the database that they are in. The tables of hits are in hits.py."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, models, router
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.counters.keys import ObjectKey
from django_hitcount.db.tables.hits import CounterRow as CounterRow
from django_hitcount.db.tables.hits import DailyHitSlot as DailyHitSlot
from django_hitcount.db.tables.hits import DailyModelHits as DailyModelHits
from django_hitcount.db.tables.hits import HitSlot as HitSlot
from django_hitcount.db.tables.hits import ObjectIdField, Row, unique
from django_hitcount.db.tables.hits import RefusedHitSlot as RefusedHitSlot
from django_hitcount.db.tables.hits import SlotRow as SlotRow
from django_hitcount.db.tables.imports import Import as Import
from django_hitcount.db.tables.imports import ImportedHits as ImportedHits


def hits_alias() -> str:
    """Return the alias of the database that holds all tables of django_hitcount."""
    # Each hit asks this several times. Without routers, Django takes longer for the same answer.
    return router.db_for_write(HitSlot) if router.routers else DEFAULT_DB_ALIAS


class LastBatch(Row):
    """
    The ledger: the last batch of a partition and a generation that was written into the slots.

    A batch is the hits of a partition that are flushed together. Those of a generation are written
    in the order of their numbers. A second flush of a batch finds that its number is not greater
    than this one, and writes nothing.
    """

    partition = models.SmallIntegerField()
    # A run id, a colon and 32 hexadecimal digits are 73 characters.
    generation = models.CharField(max_length=100)
    number = models.BigIntegerField()
    """0 until the first batch of the generation is in the slots."""

    claim = models.BigIntegerField(default=0)
    """The random number of the claim that set this batch aside."""

    flushed_at = models.DateTimeField(null=True)
    settled = models.BigIntegerField(default=0)
    """Redis has dropped the batches up to this number, or the totals that may lack them."""

    KEY = ("partition", "generation")

    class Meta(Row.Meta):
        constraints = [unique("lastbatch", "partition", "generation")]


class MissedRecord(Row):
    """
    Hits that Redis missed, or may have missed. Kept until Redis is up to date.

    Without the id of a command, the hits are already in the slots. Only the running totals in Redis
    must be discarded. With one, Redis may have run the command with these hits or not. It is sent
    again with the same id, and Redis runs it at most once.
    """

    command_id = models.JSONField(null=True, editable=False)
    hits = models.JSONField(editable=False)
    missed_at = models.DateTimeField(default=timezone.now)

    KEY = ("command_id", "missed_at")


class Correction(CounterRow):
    """
    Hits of a day that somebody added or took back by hand: who, when and why.

    Has what a DailyHitSlot has but ``slot`` and ``hits``, and ``amount``, ``reason``, ``made_by``
    and ``made_at``.
    """

    day = models.DateField(_("day"))
    amount = models.BigIntegerField(_("amount"))
    """How many hits were added; negative if they were taken back."""

    reason = models.CharField(_("reason"), max_length=conf.REASON_MAX_LENGTH)
    made_by = models.CharField(_("made by"), max_length=conf.USERNAME_MAX_LENGTH)
    """The name of the user. Not a foreign key: users may be in another database."""

    made_at = models.DateTimeField(_("made at"), default=timezone.now)

    class Meta(Row.Meta):
        verbose_name = _("correction")
        verbose_name_plural = _("corrections")
        permissions = [
            ("add_correction", "Can correct hits"),
            ("view_correction", "Can view corrections of hits"),
        ]
        indexes = [
            models.Index(
                fields=["content_type", "object_id", "counter"], name="hitcount_correction_object"
            ),
            models.Index(fields=["made_at"], name="hitcount_correction_made_at"),
        ]

    def __str__(self) -> str:
        return f"{self.amount:+} {self.counter} on {self.day}"


class StaleTotal(CounterRow):
    """
    A counter whose total has changed since its HitCountField was written.

    A compaction adds the row in the transaction that folds hits of the counter. A counter may have
    several rows.
    """


class DeletedObject(Row):
    """
    An object that was deleted, kept until nothing is left of its hits and visitors.

    Written in the transaction that deletes the object, if that is in the same database. It has
    no foreign key, so it locks no row of another table.
    """

    content_type_id = models.IntegerField()
    object_id = ObjectIdField(max_length=conf.OBJECT_ID_MAX_LENGTH)
    # Django sets no limit, and names of databases are far shorter.
    database = models.CharField(max_length=255)
    """The database that the object was deleted from."""

    saved_in = models.CharField(max_length=255, blank=True)
    """The database that the object was last read from or saved to. Differs if it was moved."""

    is_committed = models.BooleanField()
    """Whether the delete is. If the object is there again, it was created again."""

    deleted_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=timezone.now)
    """When to look for counts of the object again."""

    is_forgotten = models.BooleanField(default=False)
    """Whether the counts of the object were deleted. Hits may still come after that."""

    KEY = ("content_type_id", "object_id")

    class Meta(Row.Meta):
        indexes = [
            models.Index(fields=["content_type_id", "object_id"], name="hitcount_deleted_object"),
            models.Index(fields=["due_at"], name="hitcount_deleted_due"),
        ]

    @property
    def object_key(self) -> ObjectKey:
        """The content type id and the object id."""
        return self.content_type_id, self.object_id


class DailyVisitors(CounterRow):
    """How many visitors a counter had on one day, under one visitor key."""

    day = models.DateField()
    visitor_key = models.CharField(max_length=conf.VISITOR_KEY_MAX_LENGTH)
    count = models.BigIntegerField()
    sketch = models.BinaryField(null=True)
    """The visitors as a HyperLogLog of Redis; NULL if they were counted one by one."""

    KEY = (*CounterRow.KEY, "day", "visitor_key")

    class Meta(Row.Meta):
        constraints = [
            unique("dailyvisitors", "content_type", "object_id", "counter", "day", "visitor_key")
        ]


class SeenVisitor(CounterRow):
    """
    A visitor of a counter on one day. The row is kept while the day is open.

    ``visitor`` is a keyed hash of the visitor *and* the counter. Rows of one visitor on two
    objects have nothing in common, not even neighboring primary keys.
    """

    day = models.DateField()
    visitor_key = models.CharField(max_length=conf.VISITOR_KEY_MAX_LENGTH)
    visitor = models.CharField(max_length=32, editable=False)
    """128 bits in hexadecimal: MariaDB accepts only some of these values as a UUID."""

    KEY = DailyVisitors.KEY

    class Meta(Row.Meta):
        constraints = [
            unique("seenvisitor", "content_type", "object_id", "counter", "day", "visitor")
        ]
        indexes = [models.Index(fields=["day"], name="hitcount_seenvisitor_day")]


class VisitorSalt(Row):
    """The random half of a visitor key; the other half is SECRET_KEY. Deleted once it is old."""

    period = models.CharField(max_length=conf.VISITOR_KEY_MAX_LENGTH, primary_key=True)
    salt = models.BinaryField(editable=False)
    made_at = models.DateTimeField(default=timezone.now)

    KEY = ("period",)


class Admission(Row):
    """
    When a caller or a visitor was last admitted under a name, by the clock of the database.

    A throttle admits callers. A counter whose ``repeat`` is a number of seconds admits visitors.
    """

    # A prefix and the name of a throttle.
    name = ObjectIdField(max_length=200, primary_key=True)
    admitted_at = models.BigIntegerField()
    """In microseconds since 1970."""

    expires_at = models.BigIntegerField()
    """When the interval ends. After that, the row has no effect."""

    KEY = ("name",)

    class Meta(Row.Meta):
        indexes = [models.Index(fields=["expires_at"], name="hitcount_admission_expires")]


class CountedAddress(Row):
    """
    How many hits of one address a counter counted in one interval.

    ``name`` has the last day of the interval and a keyed hash of the address, the interval, the
    object *and* the counter. Two rows of one address have nothing in common. Rows are deleted some
    days after their interval. The sums of Buffer.count_by_name() are here, too.
    """

    # A date, a colon and 32 hexadecimal digits.
    name = ObjectIdField(max_length=43, primary_key=True)
    hits = models.BigIntegerField()

    KEY = ("name",)


TABLES_OF_OBJECTS: tuple[type[CounterRow], ...] = (
    *(ImportedHits, HitSlot, DailyHitSlot),
    *(SeenVisitor, DailyVisitors, Correction),
)
"""
The tables whose rows are deleted with their object.

ImportedHits before the hits: an undo that comes in between would take back hits that are gone.
SeenVisitor before DailyVisitors: a fold turns rows of the first into rows of the second.
"""
