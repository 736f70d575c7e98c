"""The commands: how they read days, and print numbers and errors."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import suppress
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from django_hitcount.db.tables import HitSlot, hits_alias
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import HitCountError
from django_hitcount.maintenance import describe_error


def read_day(text: str) -> date:
    """Return the day that an option names. Raises ArgumentTypeError if it is none."""
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise ArgumentTypeError(f"{text!r} is no day, such as 2020-01-31") from exc


class HitCountCommand(BaseCommand):
    """Prints errors without a traceback, and says what to do."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (HitCountError, ExceptionGroup, OSError, *DATABASE_ERRORS) as exc:
            text = describe_error(exc)
            with suppress(*DATABASE_ERRORS):
                if _lacks_migrations():
                    text += f"\nRun: python manage.py migrate --database {hits_alias()}"
            raise CommandError(text) from exc


def _lacks_migrations() -> bool:
    """Return whether migrate has anything to do for the app. Costs a query or two."""
    executor = MigrationExecutor(connections[hits_alias()])
    leaves = executor.loader.graph.leaf_nodes(HitSlot._meta.app_label)
    return bool(executor.migration_plan(leaves))


def count_of(number: int, singular: str, plural: str) -> str:
    """Return a number with its noun: "1 batch", "1,200 batches"."""
    return f"{number:,} {singular if number == 1 else plural}"


class ProgressLine:
    """
    Shows how far a long command is: on a terminal, a bar by tqdm if that is installed.

    Elsewhere, prints a line for each tenth, or for each hundred thousand rows.
    """

    def __init__(self, stdout: OutputWrapper) -> None:
        self._stdout = stdout
        self._bar: Any = None
        self._last = ("", -1)
        self._make_bar: Any = None
        if stdout.isatty():
            with suppress(ImportError):
                from tqdm import tqdm

                self._make_bar = tqdm

    def __call__(self, done: str, number: int, total: int) -> None:
        if self._make_bar:
            self._move_bar(done, number, total)
            return
        step = number * 10 // total if total else number // 100_000
        if step and (done, step) != self._last:
            of = f" of {total:,}" if total else ""
            self._stdout.write(f"{number:,}{of} rows {done}")
        self._last = (done, step)

    def _move_bar(self, done: str, number: int, total: int) -> None:
        if self._last[0] != done:
            self.close()
            self._bar = self._make_bar(total=total or None, desc=done, unit=" rows")
            self._last = (done, 0)
        self._bar.update(number - self._bar.n)

    def close(self) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
