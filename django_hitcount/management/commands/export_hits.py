from __future__ import annotations

import shutil
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from django_hitcount.importing.exporting import export_hits
from django_hitcount.management import HitCountCommand, count_of, read_day


class Command(HitCountCommand):
    help = "Write the hits of each object, counter and day as CSV, which import_hits reads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="the file; by default, the output")
        parser.add_argument("--counter", help="the hits of one counter only")
        parser.add_argument("--first-day", type=read_day, help="such as 2024-02-29")
        parser.add_argument("--last-day", type=read_day)

    def handle(self, *, file: Path | None, verbosity: int, **options: Any) -> None:
        limits = {name: options[name] for name in ("counter", "first_day", "last_day")}
        if file is None:
            export_hits(self.stdout, **limits)  # type: ignore[arg-type]  # It can be written to.
            return
        # An export that fails must not overwrite an earlier one.
        with TemporaryFile("w+", encoding="utf-8", newline="") as exported:
            rows = export_hits(exported, **limits)
            exported.seek(0)
            with file.open("w", encoding="utf-8", newline="") as opened:
                shutil.copyfileobj(exported, opened)
        if verbosity:
            self.stdout.write(f"Wrote {count_of(rows, 'row', 'rows')} to {file}.")
