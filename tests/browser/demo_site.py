"""The example site with its made-up traffic, running as a newcomer runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
SITE = re.compile(r"The site: +(\S+)/\n")
ADMIN = re.compile(r"The admin: +\S+ +user (\S+), password (\S+)\n")
STOP_SECONDS = 30


class DemoSite(NamedTuple):
    address: str
    """Without a slash at the end."""

    user: str
    password: str


@contextmanager
def run_demo(*options: str) -> Iterator[DemoSite]:
    """Run ``manage.py demo``; raises RuntimeError with its output if it ends early."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    process = subprocess.Popen(
        [sys.executable, "example_project/manage.py", "demo", *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _read_addresses(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_SECONDS)


def _read_addresses(process: subprocess.Popen[str]) -> DemoSite:
    output = ""
    for line in process.stdout or ():
        output += line
        if (admin := ADMIN.search(output)) and (site := SITE.search(output)):
            return DemoSite(site[1], admin[1], admin[2])
    raise RuntimeError(f"The demo has ended:\n{output}")
