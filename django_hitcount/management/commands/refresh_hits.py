from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.reading import refresh_hits


class Command(BaseCommand):
    help = (
        "Make Redis read all totals from the tables again. Run it after you changed the tables by "
        "other means than django_hitcount, for example when you have restored a backup."
    )

    def handle(self, *, verbosity: int, **options: Any) -> None:
        try:
            refresh_hits()
        except BufferUnavailable as exc:
            raise CommandError(f"{exc} Run the command again when Redis answers.") from exc
        if verbosity:
            self.stdout.write("All numbers will be read from the tables again.")
