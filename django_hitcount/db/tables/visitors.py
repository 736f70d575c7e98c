"""The tables of visitors, addresses and throttles."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.db.fields import ObjectIdField
from django_hitcount.db.tables.hits import CounterRow


class DailyVisitors(CounterRow):
    """How many visitors a counter had on one day, under one visitor key."""

    day = models.DateField(_("day"))
    visitor_key = models.CharField(_("visitor key"), max_length=conf.VISITOR_KEY_MAX_LENGTH)
    count = models.BigIntegerField(_("visitors"))
    sketch = models.BinaryField(_("sketch"), null=True)
    """The visitors as a HyperLogLog of Redis; NULL if they were counted one by one."""

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
    A visitor of a counter on one day. The row is kept while the day is open.

    ``visitor`` is a keyed hash of the visitor *and* the counter. Rows of one visitor on two
    objects have nothing in common, not even neighboring primary keys.
    """

    day = models.DateField(_("day"))
    visitor_key = models.CharField(_("visitor key"), max_length=conf.VISITOR_KEY_MAX_LENGTH)
    visitor = models.CharField(_("visitor"), max_length=32, editable=False)
    """128 bits in hexadecimal: MariaDB accepts only some of these values as a UUID."""

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
    """
    When a caller or a visitor was last admitted under a name, by the clock of the database.

    A throttle admits callers. A counter whose ``repeat`` is a number of seconds admits visitors.
    """

    name = ObjectIdField(_("name"), max_length=conf.ADMISSION_NAME_MAX_LENGTH, primary_key=True)
    admitted_at = models.BigIntegerField(_("admitted at"))
    """In microseconds since 1970."""

    expires_at = models.BigIntegerField(_("expires at"))
    """When the interval ends. After that, the row has no effect."""

    class Meta:
        verbose_name = _("admission")
        verbose_name_plural = _("admissions")
        indexes = [models.Index(fields=["expires_at"], name="hitcount_admission_expires")]

    def __str__(self) -> str:
        return str(self.name)


class CountedAddress(models.Model):
    """
    How many hits of one address a counter counted in one interval.

    ``name`` has the last day of the interval and a keyed hash of the address, the interval, the
    object *and* the counter. Two rows of one address have nothing in common. Rows are deleted some
    days after their interval.
    """

    name = ObjectIdField(_("name"), max_length=conf.ADDRESS_NAME_LENGTH, primary_key=True)
    hits = models.BigIntegerField(_("hits"))

    class Meta:
        verbose_name = _("counted address")
        verbose_name_plural = _("counted addresses")

    def __str__(self) -> str:
        return str(self.name)
