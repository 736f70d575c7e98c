"""Tables of this site: those of django-hitcount, and a column of a model."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.apps.registry import Apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import FieldDoesNotExist, FieldError
from django.db import DEFAULT_DB_ALIAS, connections, models, router

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.days import check_day, day_of
from django_hitcount.counters.keys import ObjectKey, check_counter
from django_hitcount.counters.primary_keys import convert_key
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.rows import Findings, SourceRow, find_key, with_counter

ROWS_AT_A_TIME = 10_000
"""Rows that are read at a time: few enough for memory, and not held by the database meanwhile."""


def read_in_pieces(rows: models.QuerySet[Any, Any], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the primary key and ``columns`` of rows, in the order of the key."""
    last = None
    while True:
        found = rows if last is None else rows.filter(pk__gt=last)
        some = [*found.order_by("pk").values_list("pk", *columns)[:ROWS_AT_A_TIME]]
        yield from some
        if len(some) < ROWS_AT_A_TIME:
            return
        last = some[-1][0]


@dataclass(frozen=True)
class Column:
    """
    A number that a model has of its own, such as ``Column("blog.Article", "views", day)``.

    It does not say when the hits came: all of them count on ``day``.
    """

    model: str
    column: str
    day: datetime.date
    counter: str = DEFAULT_COUNTER

    @property
    def name(self) -> str:
        """The id of the import by default."""
        return with_counter(f"column {self.model}.{self.column}".lower(), self.counter)

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """Yield the hits of each object, without those that have none."""
        try:
            model = apps.get_model(self.model)
        except (LookupError, ValueError) as exc:
            raise InvalidArgument(f"Invalid model: {self.model!r}. Name it as app.Model.") from exc
        counter, day = check_counter(self.counter), check_day(self.day)
        content_type_id = content_type_id_of(model)
        objects: models.QuerySet[Any, Any] = models.QuerySet(model, using=router.db_for_read(model))
        try:
            counted = objects.exclude(**{self.column: 0}).exclude(**{self.column: None})
            for pk, hits in read_in_pieces(counted, self.column):
                place = f"{model._meta.label_lower}:{pk}"
                if isinstance(hits, bool) or int(hits) != hits:
                    findings.add_problem(place, f"{self.column} is {hits!r}, not a whole number")
                    continue
                key = content_type_id, convert_key(model, pk)
                yield SourceRow(place, key, counter, day, int(hits))
        except (FieldError, FieldDoesNotExist, ValueError, TypeError, OverflowError) as exc:
            raise InvalidArgument(
                f"Invalid column: {self.column!r} of {model._meta.label} holds no numbers: {exc}"
            ) from exc


@dataclass(frozen=True)
class HitcountTables:
    """
    The tables of django-hitcount or dj-hitcount, whether the app is still installed or not.

    They have a total for each object, and a row for each hit, until ``hitcount_cleanup`` deletes
    it. Hits without a row count on ``day``.
    """

    day: datetime.date | None = None
    counter: str = DEFAULT_COUNTER
    using: str = DEFAULT_DB_ALIAS

    @property
    def name(self) -> str:
        """The id of the import by default."""
        return with_counter("hitcount", self.counter)

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """Yield a row for each hit that has one, and then the rest of each total."""
        if self.day is not None:
            check_day(self.day)
        counter, (totals, hits) = check_counter(self.counter), self._make_models()
        objects = self._find_objects(totals, findings)
        seen: Counter[int] = Counter()
        for pk, total_id, created in read_in_pieces(hits, "total_id", "created"):
            seen[total_id] += 1
            if obj := objects.get(total_id):
                yield SourceRow(f"hitcount_hit {pk}", obj, counter, day_of(created), 1)
        # Read after the rows: whoever is counted meanwhile is not lost.
        for pk, hits_of_all_time in read_in_pieces(totals, "hits"):
            rest, obj = hits_of_all_time - seen[pk], objects.get(pk)
            if obj and rest > 0:
                if self.day is None:
                    raise InvalidArgument(
                        "django-hitcount has deleted the rows of some hits, so their days are not "
                        "known. Name a day for them (day=, or --day)."
                    )
                place = f"{totals.model._meta.db_table} {pk}"
                yield SourceRow(place, obj, counter, self.day, rest)

    def _make_models(self) -> tuple[models.QuerySet[Any, Any], models.QuerySet[Any, Any]]:
        """Return the rows of both tables."""
        table = "hitcount_hit_count"
        if apps.is_installed("hitcount"):
            label = getattr(settings, "HITCOUNT_HITCOUNT_MODEL", "hitcount.HitCount")
            table = apps.get_model(label)._meta.db_table
        if self.using not in connections:
            raise InvalidArgument(
                f"Unknown database {self.using!r}. DATABASES has {', '.join(connections)}."
            )
        connection = connections[self.using]
        known = connection.introspection.table_names()
        if missing := [name for name in (table, "hitcount_hit") if name not in known]:
            raise InvalidArgument(
                f"The database {self.using!r} has no table {missing[0]!r} of django-hitcount."
            )
        total, hit = _define_models(table)
        return models.QuerySet(total, using=self.using), models.QuerySet(hit, using=self.using)

    def _find_objects(
        self, totals: models.QuerySet[Any, Any], findings: Findings
    ) -> dict[int, ObjectKey]:
        """Return the objects by the primary keys of their totals."""
        found = ContentType.objects.using(self.using).all()
        labels = {one.pk: f"{one.app_label}.{one.model}" for one in found}
        objects: dict[int, ObjectKey] = {}
        for pk, type_id, object_pk in read_in_pieces(totals, "type_id", "object_pk"):
            try:
                objects[pk] = find_key(f"{labels.get(type_id, type_id)}:{object_pk}")
            except InvalidArgument as exc:
                findings.add_problem(f"{totals.model._meta.db_table} {pk}", str(exc))
        return objects


def _define_models(table: str) -> tuple[type[models.Model], type[models.Model]]:
    """Define models for the tables of an app that may no longer be installed."""
    found = Apps()

    class Total(models.Model):
        id = models.BigAutoField(primary_key=True)
        hits = models.BigIntegerField()
        type_id = models.IntegerField(db_column="content_type_id")
        object_pk = models.CharField(max_length=255)

        class Meta:
            app_label, managed, db_table, apps = "hitcount", False, table, found

        def __str__(self) -> str:
            return f"{self.type_id}:{self.object_pk}"

    class Hit(models.Model):
        id = models.BigAutoField(primary_key=True)
        total_id = models.BigIntegerField(db_column="hitcount_id")
        created = models.DateTimeField()

        class Meta:
            app_label, managed, db_table, apps = "hitcount", False, "hitcount_hit", found

        def __str__(self) -> str:
            return f"{self.total_id}"

    return Total, Hit
