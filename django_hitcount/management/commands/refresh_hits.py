from __future__ import annotations

from typing import Any

from django_hitcount.management import HitCountCommand
from django_hitcount.reading import refresh_hits


class Command(HitCountCommand):
    help = (
        "Make Redis read all totals from the tables again. Run it after you changed the tables by "
        "other means than django_hitcount, for example when you have restored a backup."
    )

    def handle(self, *, verbosity: int, **options: Any) -> None:
        refresh_hits()
        if verbosity:
            self.stdout.write("All numbers will be read from the tables again.")
