"""
SQL that depends on the database. It is made when Django compiles the statement.

So building a queryset needs no query, and works in an async view, too.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldError
from django.db import models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import LOOKUP_SEP
from django.db.models.expressions import Combinable, Expression, OuterRef, Subquery
from django.db.models.functions import Cast, Coalesce, Collate, Concat, RTrim, Substr
from django.db.models.sql import Query
from django.db.models.sql.compiler import SQLCompiler

from django_hitcount import conf
from django_hitcount.counters.days import last_days
from django_hitcount.counters.keys import check_counter, valid_visitor_counter
from django_hitcount.counters.primary_keys import KeyType, is_uuid_as_digits, key_field, key_type
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import DailyHitSlot, DailyVisitors, HitSlot, SeenVisitor
from django_hitcount.db.tables.hits import exact_collation
from django_hitcount.exceptions import HitCountError

Rows = models.QuerySet[Any, Any]

UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
"""Start and length of each part of a UUID that a dash ends, in its 32 hexadecimal digits."""


class ContentTypeId(Expression):
    """The content type id of a model."""

    def __init__(self, model: type[models.Model]) -> None:
        super().__init__(output_field=models.IntegerField())
        self.model = model

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[str | int, ...]]:
        return "%s", (content_type_id_of(self.model),)


class KeyText(models.Func):
    """
    A primary key as the text that ``object_id`` holds; see convert_key().

    Compiling it raises InvalidKey if hits cannot be counted for such a key.
    """

    def __init__(self, expression: Combinable, *, model: type[models.Model]) -> None:
        super().__init__(
            expression, output_field=models.CharField(max_length=conf.OBJECT_ID_MAX_LENGTH)
        )
        self.model = model

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra_context: Any
    ) -> Any:
        kind = key_type(self.model)
        field = key_field(self.model)
        text: Expression = Cast(self.get_source_expressions()[0], self.output_field)
        if kind is KeyType.UUID and is_uuid_as_digits(field, connection):
            text = _with_dashes(text)
        if kind is KeyType.PADDED_TEXT:
            text = RTrim(text)
        if connection.vendor == "mysql":
            text = Collate(text, exact_collation(connection))
        return compiler.compile(text)


def _with_dashes(digits: Expression) -> Concat:
    parts: list[Combinable] = []
    for start, length in UUID_PARTS:
        parts += [Substr(digits, start, length), models.Value("-")]
    return Concat(*parts[:-1])


class _InTables(models.Func):
    """
    The sum of subqueries about a counter of each object, in the tables of the same database.

    Each has one number, or none, which counts as 0.
    """

    template = "(%(expressions)s)"
    arg_joiner = " + "

    def __init__(self, model: type[models.Model], *numbers: Rows, counter: str) -> None:
        big = models.BigIntegerField()
        found = (Coalesce(Subquery(rows, output_field=big), models.Value(0)) for rows in numbers)
        super().__init__(*found, output_field=big)
        self.model = model
        self.counter = counter

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra_context: Any
    ) -> Any:
        check_counter(self.counter)
        homes = [router.db_for_read(HitSlot), router.db_for_write(HitSlot)]
        if connection.alias not in homes:
            raise HitCountError(
                f"with_hits(), with_visitors() and HitCountSum need {self.model._meta.label} and "
                f"HitSlot in one database; the query is for {connection.alias!r}, and the counts "
                f"are in {homes[0]!r}. Use get_hits(objects) or get_visitors(objects) instead."
            )
        return super().as_sql(compiler, connection, **extra_context)


class FirstOfDays(Expression):
    """The first of the last ``days``, today included, when the query is made."""

    def __init__(self, days: int) -> None:
        super().__init__(output_field=models.DateField())
        self.days = days

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        return compiler.compile(models.Value(last_days(self.days)[0], models.DateField()))


def _rows_of(
    table: type[models.Model], model: type[models.Model], counter: str, days: int | None
) -> Rows:
    """
    Return the rows of a counter of the object that an outer query is at, in one group.

    With ``days``, those of the last days: not of days to come, which hits may have, too.
    """
    rows = table._default_manager.filter(
        content_type_id=ContentTypeId(model),
        object_id=KeyText(OuterRef("pk"), model=model),
        counter=counter,
    ).order_by()
    if days is not None:
        rows = rows.filter(day__range=(FirstOfDays(days), FirstOfDays(1)))
    return rows.values("counter")


class HitsInTables(_InTables):
    """The hits of a counter of each object, of all time or of the last days."""

    def __init__(self, model: type[models.Model], *, counter: str, days: int | None = None) -> None:
        rows = _rows_of(HitSlot if days is None else DailyHitSlot, model, counter, days)
        super().__init__(model, rows.values(total=models.Sum("hits")), counter=counter)


class VisitorsInTables(_InTables):
    """
    The visitors of a counter of each object on each of the last days, added up.

    Those of open days are counted one by one in SeenVisitor, if there is no Redis.
    """

    def __init__(self, model: type[models.Model], *, counter: str, days: int) -> None:
        counted = _rows_of(DailyVisitors, model, counter, days).values(total=models.Sum("count"))
        seen = _rows_of(SeenVisitor, model, counter, days).values(total=models.Count("pk"))
        super().__init__(model, counted, seen, counter=counter)
        self.days = days

    def as_sql(self, *args: Any, **kwargs: Any) -> Any:
        valid_visitor_counter(self.counter)
        return super().as_sql(*args, **kwargs)


class HitCountSum(Expression):
    """
    The hits of all objects that a relation leads to, for annotate(), filter() and order_by()::

        Category.objects.annotate(article_hits=HitCountSum("articles")).order_by("-article_hits")

    The path may follow foreign keys in both directions, many-to-many and generic relations, and
    several of them ("articles__comments"). An object that is reached more than once counts once.
    Managers do not matter: objects that they hide count, too. Without objects, the sum is 0.

    The sum is that of the tables: with Redis, all hits up to the last flush.

    Args:
        path: the names of the relations, with two underscores between them.
        counter: the name of a counter in HITCOUNT["COUNTERS"].

    Raises FieldError if the path does not lead to objects. When the queryset is evaluated, raises
    InvalidArgument if ``counter`` is not declared or hits cannot be counted for such objects, and
    HitCountError if the counts are in another database.

    Costs a subquery that reads the rows of all these objects by their unique key.
    """

    def __init__(self, path: str, *, counter: str = conf.DEFAULT_COUNTER) -> None:
        super().__init__(output_field=models.BigIntegerField())
        self.path = path
        self.counter = counter

    def resolve_expression(  # type: ignore[override]
        self, query: Query, *args: Any, **kwargs: Any
    ) -> Any:
        """
        Return the subquery. Only now is the model known that the path begins at.

        ``paths`` are all ways from one object along the path, and ``related`` the objects at their
        ends. Both are plain querysets, since a manager may hide objects.
        """
        source: Any = query.model
        model = self._find_related_model(query)
        # Two levels up: ``paths`` is within ``related``, and that within the query.
        paths: Any = models.QuerySet(source).filter(pk=OuterRef(OuterRef("pk"))).order_by()
        related: Any = models.QuerySet(model).filter(pk__in=paths.values(f"{self.path}__pk"))
        # Not Sum(): as an aggregate, it would group the objects.
        total = models.Func(HitsInTables(model, counter=self.counter), function="SUM")
        total.output_field = self.output_field
        subquery = Subquery(related.order_by().values(hitcount_total=total))
        filled = Coalesce(subquery, models.Value(0), output_field=self.output_field)
        return filled.resolve_expression(query, *args, **kwargs)

    def _find_related_model(self, query: Query) -> Any:
        """Return the model that the path leads to."""
        names = self.path.split(LOOKUP_SEP)
        steps, field, _, _ = query.names_to_path(names, query.get_meta(), fail_on_missing=True)
        if not steps or not field.is_relation:
            raise FieldError(
                f"Invalid path: {self.path!r} of {query.get_meta().label} does not lead to "
                "objects. Pass the name of a relation."
            )
        return steps[-1].to_opts.model
