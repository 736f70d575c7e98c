from __future__ import annotations

from typing import Any

import waitress
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.management.base import BaseCommand, CommandParser
from example.wsgi import application

THREADS = 8


class Command(BaseCommand):
    help = "Serve the site and its static files with waitress."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *, port: int, **options: Any) -> None:
        waitress.serve(
            StaticFilesHandler(application), host="127.0.0.1", port=port, threads=THREADS
        )
