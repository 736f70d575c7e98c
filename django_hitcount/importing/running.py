"""
Import hits, exactly once, and take them back.

The rows of a source are added up and sorted in a temporary database, and then written in pieces in
lock order. Each piece is one transaction, in which the row of the import notes how far it got, as
a flush notes its batch in the ledger. So an import that died is continued after its last piece. A
piece has all days of a counter, so it does not matter if the source has others by then.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Literal

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import check_ends, day_of
from django_hitcount.counters.imports import Days
from django_hitcount.counters.keys import check_text
from django_hitcount.db import imports
from django_hitcount.db.tables import Import, ImportedHits
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.existing import keep_existing
from django_hitcount.importing.pieces import PIECE_SIZE, take_piece, write_piece
from django_hitcount.importing.rows import Findings, Source, SourceRow, keep_valid
from django_hitcount.importing.spool import Spool
from django_hitcount.maintenance.flushing import flush_hits

STRATEGIES = ("add", "replace", "larger")

Strategy = Literal["add", "replace", "larger"]

Progress = Callable[[str, int, int], object]
"""Is called with what is done ("read", "written", in a dry run "compared", or "undone"), with how
many rows it is done, and of how many, or 0 if that is not known."""

ROWS_PER_REPORT = 10_000
"""Rows of a source after which ``progress`` is called while it is read."""


@dataclass(kw_only=True)
class ImportSummary:
    """What an import has done, or what a dry run would do."""

    import_id: str
    """What undo_import() needs."""

    was_finished: bool = False
    """Whether an earlier run has finished it, so that this one did nothing."""

    rows: int = 0
    """How many counters and days this run has changed."""

    hits: int = 0
    """Hits that it has added, less those that were replaced."""

    visitors: int = 0
    """Visitors that it has added."""

    objects: int = 0
    """Objects that the source has hits of."""

    first_day: datetime.date | None = None
    last_day: datetime.date | None = None
    problems: int = 0
    """Rows that were left out because something is wrong with them."""

    shown_problems: list[str] = field(default_factory=list)
    """What is wrong with the first twenty that were found, and where they are."""

    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows that are no hits, by reason."""

    refused: Mapping[str, int] = field(default_factory=dict)
    """Refused hits of an access log, by the name of the refusal."""


def _say_nothing(done: str, number: int, total: int) -> None:
    return


def import_hits(
    source: Source,
    *,
    import_id: str | None = None,
    strategy: Strategy = "add",
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
    dry_run: bool = False,
    strict: bool = False,
    progress: Progress | None = None,
) -> ImportSummary:
    """
    Import the hits of a source, such as ``django_hitcount.importing.CsvFiles(["hits.csv"])``.

    Each import has an id. If its process dies, call this again: it continues, and nothing is
    counted twice. Once it is finished, it adds nothing more. Rows with a problem, such as an
    unknown object, are left out and listed in the summary.

    Args:
        source: where the hits are.
        import_id: the id of the import, up to 200 characters. By default, the name of the source,
            which for files has a hash of what is in them, and the days that are passed.
        strategy: "add" adds the hits of each object, counter and day to those that the tables have.
            "replace" makes them those of the source, and "larger" does so where the source has
            more. Days without a row in the source stay as they are. A number of visitors never
            becomes smaller.
        first_day: leave out days before this one.
        last_day: leave out days after this one. Today is the last day that can be added to, and
            yesterday the last one that can be replaced.
        dry_run: write nothing, and return what would be written.
        strict: write nothing if a row has a problem, and raise InvalidArgument.
        progress: is called now and then with "read", "written" or "compared", the number of rows
            that are, and how many there are, or 0 if that is not known.

    Raises ImportRefused if another import is not finished or has days of these, if another process
    has continued this one, or if an undo of it has begun; InvalidArgument if an argument is invalid
    or the source cannot be read; RuntimeError within a transaction; BufferUnavailable and the
    errors of the database. Then call it again.

    Costs a temporary file, a query per model and 500 rows of the source, a transaction per 5,000
    rows, and in it three statements per thousand rows, or four with visitors. "replace" and
    "larger" also cost a query per 500 counters, or two with visitors, and with Redis a flush. With
    Redis, all cost a statement and two round trips per 500 counters, and another statement per
    5,000 rows.
    """
    if import_id is None:
        import_id = _name_import(source, first_day, last_day)
    name = check_text(import_id, conf.IMPORT_ID_MAX_LENGTH, "id of an import")
    progress = progress or _say_nothing
    first_day, last_day = check_ends(first_day, last_day)
    if strategy not in STRATEGIES:
        raise InvalidArgument(
            f"Invalid strategy: {strategy!r}. Pass one of {', '.join(map(repr, STRATEGIES))}."
        )
    if not imports.check_import(name, strategy).is_open:
        return ImportSummary(import_id=name, was_finished=True)
    findings = Findings()
    with closing(Spool()) as spool:
        valid = keep_valid(
            _report(source.rows(findings), progress),
            findings,
            first_day=first_day,
            last_day=last_day,
            latest_day=day_of() - datetime.timedelta(days=0 if strategy == "add" else 1),
        )
        spool.fill(keep_existing(valid, findings))
        if strict and findings.problems:
            raise InvalidArgument(
                f"{findings.problems} rows have a problem, so nothing was imported.\n"
                + "\n".join(findings.shown)
            )
        days = spool.days()
        summary = _summarize(name, days, findings, spool.count_objects())
        if days or findings.refused:
            if strategy != "add" and get_buffer().keeps_hits:
                flush_hits()
            begin = imports.check_import if dry_run else imports.begin_import
            made = begin(name, strategy, days)
            _write_all(summary, made, spool, progress, dry_run=dry_run)
            if not dry_run:
                imports.finish_import(made, findings.refused)
    return summary


def _name_import(
    source: Source, first_day: datetime.date | None, last_day: datetime.date | None
) -> str:
    """Return the id of an import by default. Other days of the same source are another import."""
    begin = f" from {first_day}" if first_day else ""
    end = f" to {last_day}" if last_day else ""
    return source.name and f"{source.name}{begin}{end}"  # Without a name, it needs an id.


def _report(rows: Iterable[SourceRow], progress: Progress) -> Iterator[SourceRow]:
    number = 0
    for number, row in enumerate(rows, 1):
        yield row
        if number % ROWS_PER_REPORT == 0:
            progress("read", number, 0)
    progress("read", number, 0)


def _summarize(name: str, days: Days, findings: Findings, objects: int) -> ImportSummary:
    all_days = [datetime.date.fromisoformat(day) for _, _, some, _ in days for day in some]
    refused: dict[str, int] = {}
    for (_, _, refusal), number in findings.refused.items():
        refused[refusal] = refused.get(refusal, 0) + number
    return ImportSummary(
        import_id=name,
        objects=objects,
        first_day=min(all_days, default=None),
        last_day=max(all_days, default=None),
        problems=findings.problems,
        shown_problems=findings.shown,
        skipped=dict(findings.skipped),
        refused=refused,
    )


def _write_all(
    summary: ImportSummary, made: Import, spool: Spool, progress: Progress, *, dry_run: bool
) -> None:
    """Write what is left of an import, or find out what would be written."""
    total, done = spool.count(made.last_counter), 0
    for rows in spool.pieces(made.last_counter, PIECE_SIZE):
        written = imports.find_missing(rows, made.strategy) if dry_run else write_piece(made, rows)
        summary.rows += len(written)
        summary.hits += sum(row.hits for row in written)
        summary.visitors += sum(row.visitors for row in written)
        done += len(rows)
        progress("compared" if dry_run else "written", done, total)


def undo_import(import_id: str, *, dry_run: bool = False, progress: Progress | None = None) -> int:
    """
    Take back exactly the hits and visitors that an import has added. Return how many hits.

    With ``dry_run``, write nothing, and return how many hits would be taken back.

    If the import is not finished, its process stops. If this process dies, call it again. After
    that, the same source can be imported again. What was deleted since, with its object, stays so.
    What move_hits() has moved since is taken from the other object.

    Raises InvalidArgument if there is no such import, RuntimeError within a transaction, and the
    errors of the database.

    Costs per 5,000 rows a transaction of three statements, and in it two per thousand rows; with
    Redis, also a statement and two round trips per 500 counters. Reads the table of imported hits
    three times, and if the import had visitors that of the visitors of each day, too.
    """
    known, progress = imports.read_imports(), progress or _say_nothing
    made = next((made for made in known if made.name == import_id), None)
    if made and not dry_run:
        made = imports.begin_undo(made)
    if made is None:
        names = ", ".join(repr(made.name) for made in known) or "none"
        raise InvalidArgument(f"Unknown import: {import_id!r}. The imports are: {names}.")
    if dry_run:
        return imports.count_added(made)
    found = imports.find_added(made)
    total, done, hits = sum(added.count() for added in found), 0, 0
    for added in found:
        # Reads without a lock find a row that is being moved, under the old key or the new one.
        while added.exists():
            after = 0
            while taken := take_piece(made, added, after):
                after, done = taken[-1].pk, done + len(taken)
                hits += sum(row.hits for row in taken if isinstance(row, ImportedHits))
                progress("undone", done, total)
    imports.finish_undo(made)
    return hits
