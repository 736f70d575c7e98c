"""The demo as a newcomer runs it: a site, a worker and a Valkey server."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests import settings as test_settings
from tests.demo_process import read_until, start_demo
from tests.servers import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        test_settings.DATABASE != "sqlite", reason="the demo has its own SQLite database"
    ),
]

LINE = '{address} - - [{at}] "{request} HTTP/1.1" {status} 5 "-" "{agent}"\n'
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAFARI = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
REQUESTS = [
    ("GET /", "203.0.113.1", 200, FIREFOX),
    ("GET /tea", "203.0.113.1", 200, FIREFOX),
    ("GET /tea", "203.0.113.1", 200, FIREFOX),
    ("GET /tea", "203.0.113.1", 200, SAFARI),
    ("GET /tea/", "203.0.113.2", 200, FIREFOX),
    ("GET /tea", "2001:db8::1", 200, FIREFOX),
    ("GET /tea", "2001:db8::2", 304, FIREFOX),
    ("GET /tea", "203.0.113.3", 200, GOOGLEBOT),
    ("GET /robot", "203.0.113.3", 200, GOOGLEBOT),
    ("GET /tea", "203.0.113.4", 200, "-"),
    ("HEAD /tea", "203.0.113.1", 200, FIREFOX),
    ("GET /tea", "203.0.113.5", 200, FIREFOX),
    ("POST /tea", "203.0.113.1", 200, FIREFOX),
    ("GET /logo.png", "203.0.113.1", 200, FIREFOX),
    ("GET /gone", "203.0.113.1", 404, FIREFOX),
]
# Only the last counted request is after midnight, in UTC.
MOMENTS = ["17/May/2015:10:05:03 +0000"] * 11 + ["17/May/2015:22:30:00 -0400"]
MOMENTS += ["17/May/2015:23:59:59 +0000"] * 3
SECONDS = 180


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the demo with some options; kill it at the end of the test."""
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        started.append(start_demo(*options))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_replay_reports_refusals_and_ends_with_agreement(demo, tmp_path):
    log = tmp_path / "access.log"
    log.write_text(
        "".join(
            LINE.format(request=request, address=address, status=status, agent=agent, at=at)
            for (request, address, status, agent), at in zip(REQUESTS, MOMENTS, strict=True)
        )
    )

    process = demo("--replay", str(log))
    output, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, output
    lines = output.strip().splitlines()
    words = [line.split() for line in lines]
    assert ["bot", "3", "23.1%", "3"] in [line[:4] for line in words]
    assert ["method", "1", "7.7%", "1"] in [line[:4] for line in words]
    assert ["no", "page", "1", "7.7%", "0"] in [line[:5] for line in words]
    assert ["(counted)", "8", "61.5%", "8"] in words
    assert ["/robot", "1", "0", "0", "0", "0"] in words
    assert ["2015-05-17", "12", "7", "7"] in words
    assert ["2015-05-18", "1", "1", "1"] in words
    assert lines[-1].startswith("They agree on each of 3 pages: 8 hits due, 8 in the table; 6 ")


def test_ctrl_c_leaves_no_process(demo):
    process = demo("--empty")
    read_until(process, "The admin:")
    children = psutil.Process(process.pid).children(recursive=True)

    process.send_signal(signal.SIGINT)

    assert process.wait(SECONDS) == 0
    assert len(children) >= 3
    wait_until(lambda: not any(child.is_running() for child in children), "their end")


def test_second_demo_takes_another_port(demo):
    """Also when both start at the same moment."""
    processes = [demo("--empty"), demo("--empty")]
    sites = {read_until(process, "The site:").splitlines()[-1] for process in processes}
    assert len(sites) == 2
    for process in processes:
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_directory_that_is_too_long_for_a_socket_is_a_clear_error(demo, tmp_path, monkeypatch):
    directory = tmp_path / ("x" * 100)
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    process = demo("--empty")
    output, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 1
    assert "Set a shorter TMPDIR" in output.strip().splitlines()[-1]


def test_directory_with_letters_that_mean_something_in_an_address(demo, monkeypatch):
    """Then the site, the worker and the demo itself still find the same server."""
    with tempfile.TemporaryDirectory(prefix="a%41;b#c ") as directory:
        monkeypatch.setenv("TMPDIR", directory)
        process = demo("--empty")
        read_until(process, "The site:")
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_log_that_is_not_there_is_a_clear_error(demo):
    process = demo("--replay", "no-such.log")
    output, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 1
    assert "no-such.log" in output.strip().splitlines()[-1]
