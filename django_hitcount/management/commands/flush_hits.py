from __future__ import annotations

from typing import Any

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.management import HitCountCommand, count_of


class Command(HitCountCommand):
    help = "Write the hits that wait in the buffer into the tables."

    def handle(self, *, verbosity: int, **options: Any) -> None:
        done = flush_hits()
        if verbosity:
            hits = count_of(done.hits, "hit", "hits")
            counters = count_of(done.counters, "counter", "counters")
            batches = count_of(done.batches, "batch", "batches")
            self.stdout.write(f"Flushed {hits} of {counters} in {batches}.")
        for field in done.malformed:
            self.stderr.write(f"Moved to malformed: {field!r}")
