"""
The tables of hits, and the columns that other tables have, too.

Some columns and indexes have a type of their own, so that they behave the same on every database.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf


class ObjectIdField(models.CharField):  # type: ignore[type-arg]
    """
    A primary key of any type as text, compared byte by byte.

    By default, MySQL and MariaDB ignore case and trailing blanks. The keys "a", "A" and "a " would
    share one counter.
    """

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        column = super().db_type(connection)
        if connection.vendor != "mysql":
            return column
        return f"{column} CHARACTER SET utf8mb4 COLLATE {exact_collation(connection)}"


def exact_collation(connection: BaseDatabaseWrapper) -> str:
    """Return the collation under which a MySQL or MariaDB server compares all bytes of a text."""
    is_mariadb: bool = connection.mysql_is_mariadb  # type: ignore[attr-defined]
    return "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"


def match_uncompacted(connection: BaseDatabaseWrapper) -> str:
    """
    Return a condition for the rows that are not in slot 0. With it, a SlotIndex finds them.

    SQLite uses a partial index only for the condition that the index has, literally. MySQL and
    MariaDB use an index only for a comparison.
    """
    return "is_compacted = False" if connection.vendor == "mysql" else "NOT is_compacted"


def is_uncompacted(connection: BaseDatabaseWrapper) -> Any:
    """
    Return match_uncompacted() as a condition for a queryset.

    Django writes ``is_compacted=False`` in another way in each version, and on MySQL and MariaDB,
    it compares any SQL with True, which hides the column from the index.
    """
    if connection.vendor == "mysql":
        return models.Q(is_compacted=False)
    return RawSQL(match_uncompacted(connection), (), models.BooleanField())  # noqa: S611


class SlotIndex(models.Index):
    """
    An index over the rows that are not in slot 0. Its first field is ``is_compacted``.

    MySQL and MariaDB have no partial indexes, and Django leaves out an ``Index(condition=...)``
    there. So there this index covers all rows. A scan of those that match_uncompacted() finds reads
    the same rows in the same order on every database.

    With ``has_hits``, MySQL and MariaDB add up the hits of an object from the index alone. For each
    row, they would else look into the table, which takes four times as long.
    """

    def __init__(self, *, fields: list[str], name: str, has_hits: bool = False) -> None:
        super().__init__(fields=fields, name=name)
        self.has_hits = has_hits

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        return path, args, {**kwargs, "has_hits": self.has_hits}

    def create_sql(
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **kwargs: Any,
    ) -> Statement:
        if schema_editor.connection.features.supports_partial_indexes:
            index = models.Index(fields=self.fields[1:], name=self.name)
            statement = index.create_sql(model, schema_editor, using, **kwargs)
            # Not Index(condition=...): its SQL depends on the version of Django.
            condition: Any = f" WHERE {match_uncompacted(schema_editor.connection)}"
            statement.parts["condition"] = condition
            return statement
        columns = [*self.fields, "hits"] if self.has_hits else self.fields
        index = models.Index(fields=columns, name=self.name)
        return index.create_sql(model, schema_editor, using, **kwargs)


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


class HitSlot(SlotRow, CounterRow):
    """
    One of the rows that add up to the all-time total of a counter.

    Has the fields ``content_type``, ``object_id`` (the primary key as text), ``counter``, ``slot``
    and ``hits``. Those of a child model or a proxy are under the model that it counts as.
    """

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


class DailyHitSlot(SlotRow, CounterRow):
    """One of the rows that add up to the hits of a counter on one day: a HitSlot with ``day``."""

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
