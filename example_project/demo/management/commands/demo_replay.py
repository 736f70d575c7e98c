from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from demo.replay import read_log, replay


class Command(BaseCommand):
    help = (
        "Send an access log's page requests to the running site and compare them with the tables."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("log", type=Path)
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *, log: Path, port: int, **options: Any) -> None:
        if not replay(read_log(log), port=port, output=sys.stdout):
            raise SystemExit(1)
