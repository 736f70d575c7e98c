"""The demo in a process of its own, as a newcomer starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def start_demo(*options: str) -> subprocess.Popen[str]:
    """Start ``manage.py demo``. What it prints can be read at once. The caller ends it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    return subprocess.Popen(
        [sys.executable, "example_project/manage.py", "demo", *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def read_until(process: subprocess.Popen[str], text: str) -> str:
    """Return what the demo prints, up to a line with ``text``; raises RuntimeError if it ends."""
    output = ""
    for line in process.stdout or ():
        output += line
        if text in line:
            return output
    raise RuntimeError(f"The demo has ended:\n{output}")
