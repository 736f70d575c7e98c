"""The demo, as a newcomer runs it: a site, a worker and a Valkey server of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import settings as test_settings
from tests.servers import wait_until

pytestmark = pytest.mark.skipif(
    test_settings.DATABASE != "sqlite", reason="the demo has an SQLite database of its own"
)

ROOT = Path(__file__).parent.parent
LINE = (
    '203.0.113.{n} - - [17/May/2015:10:05:{n:02} +0000] "GET /{page} HTTP/1.1" {status} 5 '
    '"-" "Opera"\n'
)
SECONDS = 90


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the demo with some options; kill what a failed test leaves."""
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        del environment["DJANGO_SETTINGS_MODULE"]
        started.append(
            subprocess.Popen(
                [sys.executable, "example_project/manage.py", "demo", *options],
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_replay_ends_with_agreement(demo, tmp_path):
    log = tmp_path / "access.log"
    pages = ["", "tea", "tea", "tea", "coffee/", "logo.png", "gone"]
    log.write_text(
        "".join(
            LINE.format(n=n, page=page, status=404 if page == "gone" else 200)
            for n, page in enumerate(pages)
        )
    )

    process = demo("--replay", str(log))
    output, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, output
    last = output.strip().splitlines()[-1]
    assert last == "They agree on each of 3 pages: 5 hits sent, 5 hits in the table."


def test_ctrl_c_leaves_no_process(demo):
    process = demo()
    lines = iter(process.stdout.readline, "")
    assert any("The admin:" in line for line in lines)
    children = psutil.Process(process.pid).children(recursive=True)

    process.send_signal(signal.SIGINT)

    assert process.wait(SECONDS) == 0
    assert len(children) >= 3
    wait_until(lambda: not any(child.is_running() for child in children), "their end", 10)


def test_log_that_is_not_there_is_a_clear_error(demo):
    process = demo("--replay", "no-such.log")
    output, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 1
    assert "no-such.log" in output.strip().splitlines()[-1]
