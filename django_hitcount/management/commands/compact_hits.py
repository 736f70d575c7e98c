from __future__ import annotations

from typing import Any

from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.management import HitCountCommand, count_of


class Command(HitCountCommand):
    help = "Fold the slots of every counter into slot 0, and delete old rows. No total changes."

    def handle(self, *, verbosity: int, **options: Any) -> None:
        done = compact_hits()
        if verbosity:
            rows = count_of(done.rows, "row", "rows")
            pieces = count_of(done.pieces, "piece", "pieces")
            self.stdout.write(f"Folded {rows} in {pieces}.")
