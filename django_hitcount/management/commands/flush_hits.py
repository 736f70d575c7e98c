from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.error_collection import describe_error
from django_hitcount.maintenance.flushing import flush


class Command(BaseCommand):
    help = "Write the hits that wait in the buffer into the tables."

    def handle(self, **options: Any) -> None:
        try:
            done = flush()
        except (BufferUnavailable, ExceptionGroup) as exc:
            raise CommandError(describe_error(exc)) from exc
        self.stdout.write(
            f"Flushed {done.hits} hits of {done.counters} counters in {done.batches} batches."
        )
        for field in done.malformed:
            self.stderr.write(f"Set aside as malformed: {field!r}")
