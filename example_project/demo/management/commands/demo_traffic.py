from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from demo.made_up_visits import DAYS
from demo.traffic import record_traffic


class Command(BaseCommand):
    help = "Record made-up traffic of the last weeks."

    def handle(self, **options: Any) -> None:
        visits = record_traffic()
        self.stdout.write(
            f"The site begins with made-up traffic: {visits:,} visits in {DAYS // 7} weeks. "
            "Start with --empty to begin at 0."
        )
