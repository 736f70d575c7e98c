from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from demo.content import create_pages_of, create_samples
from demo.replay import read_log


class Command(BaseCommand):
    help = "Create the database, an admin user (DJANGO_SUPERUSER_*) and articles."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--log", type=Path, help="an article for each page in this access log")

    def handle(self, *, log: Path | None, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        call_command("createsuperuser", interactive=False, verbosity=0)
        if log:
            create_pages_of(read_log(log).page_requests)
        else:
            create_samples()
