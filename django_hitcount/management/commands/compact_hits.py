from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from django_hitcount.maintenance.compaction import compact


class Command(BaseCommand):
    help = "Fold the slots of every counter into slot 0. No total changes."

    def handle(self, **options: Any) -> None:
        done = compact()
        self.stdout.write(f"Folded {done.rows} rows in {done.batches} batches.")
