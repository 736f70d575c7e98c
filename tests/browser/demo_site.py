"""The example site with its made-up traffic, running as a newcomer runs it."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.demo_process import read_until, start_demo

SITE = re.compile(r"The site: +(\S+)/\n")
ADMIN = re.compile(r"The admin: +\S+ +user (\S+), password (\S+)\n")
STOP_SECONDS = 120


class DemoSite(NamedTuple):
    address: str
    """Without a slash at the end."""

    user: str
    password: str


@contextmanager
def run_demo(*options: str) -> Iterator[DemoSite]:
    """Run ``manage.py demo``; raises RuntimeError with its output if it ends early."""
    process = start_demo(*options)
    try:
        yield _read_addresses(process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=STOP_SECONDS)
        finally:
            process.kill()  # If it has not ended. Its children end with it.


def _read_addresses(process: subprocess.Popen[str]) -> DemoSite:
    output = read_until(process, "The admin:")
    (address,), ((user, password),) = SITE.findall(output), ADMIN.findall(output)
    return DemoSite(address, user, password)
