from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

import waitress
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.management.base import BaseCommand, CommandParser
from example.wsgi import application

THREADS = 8

site = StaticFilesHandler(application)


def without_bodies_for_head(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """The site. Neither Django nor waitress drops the body of an answer to HEAD."""
    answer = site(environ, start_response)
    if environ["REQUEST_METHOD"] != "HEAD":
        return answer
    answer.close()
    return []


class Command(BaseCommand):
    help = "Serve the site and its static files with waitress."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--listener", type=int, required=True, help="the number of an open, listening socket"
        )

    def handle(self, *, listener: int, **options: Any) -> None:
        waitress.serve(
            without_bodies_for_head,
            sockets=[socket.socket(fileno=listener)],
            threads=THREADS,
            # Whether X-Forwarded-For is to be believed is for HITCOUNT["TRUSTED_PROXIES"] to say.
            clear_untrusted_proxy_headers=False,
        )
