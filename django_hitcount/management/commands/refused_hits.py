from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django_hitcount.management import HitCountCommand
from django_hitcount.refusals.registry import reasons_by_name
from django_hitcount.status import get_refused_hits


class Command(HitCountCommand):
    help = "Show how many hits were refused each day, and why; with Redis, up to the last flush."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, default=7, help="how many days, today included (7)")

    def handle(self, *, days: int, **options: Any) -> None:
        rows = get_refused_hits(days=days)
        if not rows:
            when = "today" if days == 1 else f"in the last {days} days"
            self.stdout.write(f"No hits were refused {when}.")
        meaning = reasons_by_name()
        for row in rows:
            line = f"{row.day}  {row.counter:<12}  {row.refusal:<22}  {row.hits:>9,}  "
            self.stdout.write((line + meaning.get(row.refusal, "")).rstrip())
