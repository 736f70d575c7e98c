from __future__ import annotations

from argparse import SUPPRESS
from contextlib import closing
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.importing import Column, CsvFiles, HitcountTables, LogFiles, PlausibleFiles
from django_hitcount.importing.rows import SHOWN_PROBLEMS, Source
from django_hitcount.importing.running import (
    STRATEGIES,
    ImportSummary,
    import_hits,
    undo_import,
)
from django_hitcount.importing.urls import NO_OBJECT
from django_hitcount.management import HitCountCommand, ProgressLine, count_of, read_day


class Command(HitCountCommand):
    help = (
        "Import hits from CSV files, access logs, Plausible, a column of a model, or the tables of "
        "django-hitcount. A second run adds nothing. Run it again if it was interrupted."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A parser may be made several times, and with it the options of Django.
        self._options_of_all = CommandParser(add_help=False, conflict_handler="resolve")

    def add_base_argument(self, parser: CommandParser, *names: str, **kwargs: Any) -> None:
        """Add an option, such as one of Django, that may stand before and after the source."""
        super().add_base_argument(parser, *names, **kwargs)
        self._options_of_all.add_argument(*names, **{**kwargs, "default": SUPPRESS})

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--undo", metavar="ID", help="take back exactly what an import added")
        self.add_base_argument(
            parser, "--dry-run", action="store_true", help="only say what would change"
        )
        _add_options(self._options_of_all)
        sources = parser.add_subparsers(dest="source", metavar="source")
        add_source = partial(sources.add_parser, parents=[self._options_of_all])
        for name, text in (
            ("csv", "files as export_hits writes them: date, object, counter, hits, visitors"),
            ("log", "access logs in combined format"),
            ("plausible", "the files imported_pages_....csv of an export of Plausible"),
        ):
            of_files = add_source(name, help=text, description=text)
            of_files.add_argument("files", nargs="+", help="all files of the same days at once")
            if name != "csv":
                of_files.add_argument(
                    "--resolver",
                    metavar="blog.urls.find_object",
                    help="a function that takes a request and returns the object of its page, or "
                    "None; by default, the objects of DetailViews are found",
                )
        column = add_source("column", help="a number that a model has of its own")
        column.add_argument("column", metavar="app.Model.column")
        column.add_argument("--day", type=read_day, required=True, help=_DAY)
        tables = add_source("hitcount", help="the tables of django-hitcount or dj-hitcount")
        tables.add_argument("--day", type=read_day, help=_DAY)
        tables.add_argument("--database", default=DEFAULT_DB_ALIAS, help="where the tables are")

    def handle(
        self,
        *,
        undo: str | None,
        source: str | None,
        dry_run: bool,
        verbosity: int,
        **options: Any,
    ) -> None:
        if (undo is None) == (source is None):
            raise CommandError("Name a source, or undo an import: --undo ID.")
        with closing(ProgressLine(self.stdout)) as line:
            progress = line if verbosity else None
            if undo is not None:
                hits = undo_import(undo, dry_run=dry_run, progress=progress)
                took = "Would take back" if dry_run else "Took back"
                text = f"{took} {count_of(hits, 'hit', 'hits')} of {undo!r}."
            else:
                names = ("import_id", "strategy", "first_day", "last_day", "strict")
                wanted: dict[str, Any] = {name: options[name] for name in names}
                found = _make_source(str(source), options)
                done = import_hits(found, progress=progress, dry_run=dry_run, **wanted)
                lines = _describe(done, is_dry=dry_run)
                if done.skipped.get(NO_OBJECT) and not done.objects:
                    lines.append(_explain_no_object(options["resolver"]))
                text = "\n".join(lines)
        if verbosity:
            self.stdout.write(text)


_DAY = "the day for hits whose day is not known, such as 2020-01-01"


def _add_options(parser: CommandParser) -> None:
    parser.add_argument(
        "--id", dest="import_id", help="of the import; made of the source otherwise"
    )
    parser.add_argument("--counter", default=DEFAULT_COUNTER, help="views by default")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="add",
        help="add to the hits of each object and day (the default), replace them, or keep what is "
        "larger",
    )
    parser.add_argument("--first-day", type=read_day, help="leave out earlier days")
    parser.add_argument("--last-day", type=read_day, help="leave out later days")
    parser.add_argument(
        "--strict", action="store_true", help="write nothing if a row has a problem"
    )


def _make_source(name: str, options: dict[str, Any]) -> Source:
    counter = options["counter"]
    if name == "column":
        model, _, column = options["column"].rpartition(".")
        return Column(model, column, options["day"], counter)
    if name == "hitcount":
        return HitcountTables(options["day"], counter, options["database"])
    if name == "csv":
        return CsvFiles(options["files"], counter)
    if name == "log":
        return LogFiles(options["files"], counter, options["resolver"])
    return PlausibleFiles(options["files"], counter, options["resolver"])


def _describe(done: ImportSummary, *, is_dry: bool) -> list[str]:
    """Describe what was imported, or would be, one line for each thing."""
    if done.was_finished:
        return [
            f"{done.import_id!r} was imported before: 0 hits added.",
            f"To import it again, undo it first (--undo {done.import_id!r}), or name another --id.",
        ]
    hits = count_of(done.hits, "hit", "hits")
    if done.visitors:
        hits += f" and {count_of(done.visitors, 'visitor', 'visitors')}"
    lines = [f"{'Would import' if is_dry else 'Imported'} {hits} as {done.import_id!r}:"]
    if done.first_day:
        rows = count_of(done.rows, "row", "rows")
        objects = count_of(done.objects, "object", "objects")
        lines.append(f"  {rows} of {objects}, from {done.first_day} to {done.last_day}")
    lines += [f"  {number:,} refused: {name}" for name, number in sorted(done.refused.items())]
    lines += [f"  {number:,} skipped: {reason}" for reason, number in sorted(done.skipped.items())]
    if done.problems:
        left_out = count_of(done.problems, "row was", "rows were")
        such_as = ", such as" if len(done.shown_problems) == SHOWN_PROBLEMS else ""
        lines.append(f"{left_out} left out because of a problem{such_as}:")
        lines += [f"  {text}" for text in done.shown_problems]
    return lines


def _explain_no_object(resolver: str | None) -> str:
    if resolver:
        return f"No URL has an object: {resolver} has returned none for any of them."
    return (
        "No URL has an object. By default, only the pages of DetailViews have one. For others, "
        "name a function: --resolver blog.urls.find_object."
    )
