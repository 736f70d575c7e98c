from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from django_hitcount.flushing import flush


class Command(BaseCommand):
    help = "Write the hits that wait in the buffer into the tables."

    def handle(self, **options: Any) -> None:
        done = flush()
        self.stdout.write(
            f"Flushed {done.hits} hits of {done.counters} counters in {done.batches} batches."
        )
        for field in done.malformed:
            self.stderr.write(f"Set aside as malformed: {field!r}")
