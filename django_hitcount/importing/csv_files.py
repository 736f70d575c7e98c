"""CSV files: what export_hits() writes, and the pages that Plausible exports."""

from __future__ import annotations

import csv
import datetime
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import IO, Any, ClassVar

from django.http import HttpRequest

from django_hitcount.conf import DEFAULT_COUNTER
from django_hitcount.counters.keys import check_counter
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing.rows import Findings, SourceRow, find_key, with_counter
from django_hitcount.importing.urls import ObjectsOfUrls
from django_hitcount.reports.rows import restore

COLUMNS = ("date", "object", "counter", "hits", "visitors")

VERSION = "version 1"
"""Stands in the header behind the columns. A later version may mean something else by them."""

_VERSION = re.compile(r"version (\d+)")

NAME_START = 160
"""Characters that are kept of the name of an import of many files: the rest says little."""

Record = Mapping[str, str]
"""A line of a CSV file, by column."""


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file, which may be compressed with gzip. Raises InvalidArgument."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield file
    except (OSError, EOFError, zlib.error) as exc:
        raise InvalidArgument(f"Cannot read {path}: {exc}.") from exc


def name_of(path: Path) -> str:
    """Return the name of a file, without bytes that are no text."""
    return path.name.encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class Files:
    """Files that hits are imported from."""

    kind: ClassVar[str]
    """Begins the id of an import, which tells it from one of other kinds of files."""

    paths: Sequence[str | Path]
    counter: str = DEFAULT_COUNTER

    def __post_init__(self) -> None:
        if isinstance(self.paths, str | Path):
            raise InvalidArgument(f"Invalid paths: {self.paths!r}. Pass a list of files.")

    @property
    def name(self) -> str:
        """
        The id of the import by default: the kind, the names of the files, the counter, and a hash
        of what is in the files, so that a file that has changed is not taken for the same.

        Costs reading the files. Raises InvalidArgument if that is not possible.
        """
        files = [*map(Path, self.paths)]
        name = with_counter(" ".join([self.kind, *map(name_of, files)]), self.counter)
        digest = blake2b(name.encode(), digest_size=4)
        for path in files:
            try:
                with path.open("rb") as file:
                    if not file.seekable():
                        raise InvalidArgument(
                            f"Cannot read {path} twice: first for the id of the import, and then "
                            "for its hits. Save it as a file, or name the id (--id)."
                        )
                    digest.update(file_digest(file, blake2b).digest())
            except OSError as exc:
                raise InvalidArgument(f"Cannot read {path}: {exc}.") from exc
        return f"{name[:NAME_START]} {digest.hexdigest()}"


def read_records(
    paths: Iterable[str | Path], needed: Sequence[str], findings: Findings
) -> Iterator[tuple[str, Record]]:
    """
    Yield the place and the columns of each line of CSV files. Raises InvalidArgument.

    A line that lacks one of the columns ``needed`` is a problem, and so is one with more cells than
    the header, such as ``1,204`` hits: nobody knows which of them is which.
    """
    for path in map(Path, paths):
        with open_text(path) as file:
            # Strict: a quote without an end would take all following lines for one cell.
            lines = csv.DictReader(file, strict=True)
            try:
                lines.fieldnames = [name.strip() for name in lines.fieldnames or []]
                _check_header(path, lines.fieldnames, needed)
                for record in lines:
                    place = f"{name_of(path)}, line {lines.reader.line_num}"
                    if any(record.get(None, ())):
                        findings.add_problem(place, "the line has more cells than the header")
                    elif None in [record[name] for name in needed]:
                        findings.add_problem(place, "the line has too few columns")
                    else:
                        yield place, record
            except csv.Error as exc:
                raise InvalidArgument(
                    f"Cannot read {path}, line {lines.reader.line_num}: {exc}."
                ) from exc


def _check_header(path: Path, header: Sequence[str], needed: Sequence[str]) -> None:
    for name in header:
        found = _VERSION.fullmatch(name)
        if found and name != VERSION:
            raise InvalidArgument(
                f"{path}: the file has {name}, and this release of django_hitcount reads "
                f"{VERSION}. Install the release that exported it, or a later one."
            )
    known = dict.fromkeys([*needed, *COLUMNS])
    if double := [name for name in known if header.count(name) > 1]:
        raise InvalidArgument(
            f"{path}: the header {','.join(header)[:200]!r} has {', '.join(double)} twice. Remove "
            "one of these columns."
        )
    if missing := [name for name in needed if name not in header]:
        raise InvalidArgument(
            f"{path}: the header {','.join(header)[:200]!r} lacks {', '.join(missing)}. It needs "
            f"the columns {', '.join(needed)}, separated by commas."
        )


@lru_cache(maxsize=4096)
def parse_day(text: str) -> datetime.date:
    """Read a day. Raises InvalidArgument."""
    try:
        return datetime.date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArgument(f"invalid date {text[:80]!r}, not like 2024-02-29") from None


def parse_number(text: str, what: str) -> int:
    """Read a whole number. Raises InvalidArgument."""
    try:
        return int(text)
    except ValueError:
        raise InvalidArgument(f"invalid {what} {text[:80]!r}, not a whole number") from None


class CsvFiles(Files):
    """
    CSV files as export_hits() writes them, perhaps compressed with gzip.

    Their header has the columns ``date``, ``object`` and ``hits``, in any order. The objects are
    written as ``app.model:pk``. Without a column ``counter``, the hits are of ``counter``.
    """

    kind = "csv"

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """Yield the hits of all files."""
        counter = check_counter(self.counter)
        for place, record in read_records(self.paths, ("date", "object", "hits"), findings):
            try:
                yield SourceRow(
                    place,
                    find_key(restore(record["object"])),
                    record.get("counter") or counter,
                    parse_day(record["date"]),
                    parse_number(record["hits"], "hits"),
                    parse_number(record.get("visitors") or "0", "visitors"),
                )
            except InvalidArgument as exc:
                findings.add_problem(place, str(exc))


@dataclass(frozen=True)
class PlausibleFiles(Files):
    """
    The files ``imported_pages_....csv`` of an export of Plausible, unchanged.

    The paths become objects as the URLs of LogFiles do. Of several pages of one object, the
    visitors of a day are added up.
    """

    kind = "plausible"

    resolver: str | None = None

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """Yield the hits of all files."""
        objects = ObjectsOfUrls(self.resolver, findings)
        counter = check_counter(self.counter)
        needed = ("date", "page", "pageviews", "visitors")
        for place, record in read_records(self.paths, needed, findings):
            try:
                day = parse_day(record["date"])
                hits, visitors = (parse_number(record[name], name) for name in needed[2:])
            except InvalidArgument as exc:
                findings.add_problem(place, str(exc))
                continue
            found = objects.find(record["page"], place, HttpRequest())
            if found:
                yield SourceRow(place, found.key, counter, day, hits, visitors)
