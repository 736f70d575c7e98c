"""Choose the database that is measured, create its tables and empty them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Model

_current = DEFAULT_DB_ALIAS


@contextmanager
def using(alias: str) -> Iterator[None]:
    """
    Make ``alias`` the default database, and measure that.

    Most projects have one database, and no router that each access to a model would ask.
    """
    global _current
    before, settings = _current, connections.settings[DEFAULT_DB_ALIAS]
    _current = alias
    _make_default(connections.settings[alias])
    try:
        yield
    finally:
        _current = before
        _make_default(settings)


def _make_default(settings: dict[str, object]) -> None:
    connection.close()
    del connections[DEFAULT_DB_ALIAS]
    connections.settings[DEFAULT_DB_ALIAS] = settings


def current() -> str:
    """The alias of the database that is measured now."""
    return _current


def make_tables(alias: str) -> None:
    with using(alias), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Other apps' migrations cause some.
        call_command("migrate", run_syncdb=True, verbosity=0)


def empty(*models: type[Model]) -> None:
    """Empty the tables of ``models`` in the fastest way."""
    statement = "DELETE FROM" if connection.vendor == "sqlite" else "TRUNCATE TABLE"
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"{statement} {connection.ops.quote_name(model._meta.db_table)}")
