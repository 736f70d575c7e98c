"""Columns and indexes that must behave the same on every database."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement


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
