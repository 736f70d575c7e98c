from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_hitcount.maintenance import describe_error
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.management import count_of


class Command(BaseCommand):
    help = "Fold the slots of every counter into slot 0, and delete old rows. No total changes."

    def handle(self, *, verbosity: int, **options: Any) -> None:
        try:
            done = compact_hits()
        except ExceptionGroup as exc:
            raise CommandError(describe_error(exc)) from exc
        if verbosity:
            rows = count_of(done.rows, "row", "rows")
            pieces = count_of(done.pieces, "piece", "pieces")
            self.stdout.write(f"Folded {rows} in {pieces}.")
