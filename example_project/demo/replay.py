"""Replays an access log on the running site and proves the counts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TextIO

from django.core.management.base import CommandError
from django_redis import get_redis_connection

from demo.access_log import AccessLog, parse_log
from demo.due import due
from demo.progress import Progress
from demo.report import Report
from demo.sending import Outcome, send_all
from demo.tables import read_tables
from django_hitcount import compact_hits
from django_hitcount.db.tables import MissedRecord

FLUSH_SECONDS = 60.0
POLL_SECONDS = 0.2
FAILURES_SHOWN = 20


def read_log(file: Path) -> AccessLog:
    try:
        # Latin-1 takes any byte as it is, and the site gets back the same bytes.
        with file.open(encoding="latin-1") as lines:
            log = parse_log(lines)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    if not log.page_requests:
        raise CommandError(f"{file} has no page request in Apache's combined format.")
    return log


def replay(log: AccessLog, *, port: int, output: TextIO) -> bool:
    """True if every page request was answered and the tables hold exactly what they should."""
    output.write(
        f"{len(log.page_requests):,} page requests to send; {log.others:,} other requests "
        f"and {log.malformed:,} malformed lines are ignored.\n"
    )
    progress = Progress(len(log.page_requests), output)
    outcome = send_all(log.page_requests, host="127.0.0.1", port=port, advance=progress.advance)
    _show_failures(outcome, output)
    output.write("Waiting for the Celery worker to flush the last hits ...\n")
    output.flush()
    if not wait_for_flush():
        output.write(f"After {FLUSH_SECONDS:.0f} seconds there are still hits in the buffer.\n")
    # Visitors who came while Redis was too slow are in a table of their own. Flushing counts those
    # of today and yesterday, and this the earlier ones.
    compact_hits()
    failures = len(outcome.failures)
    report = Report.compare(due(outcome.answered), read_tables(), failures=failures)
    output.writelines(f"{line}\n" for line in report.lines())
    return report.agrees


def wait_for_flush() -> bool:
    deadline = time.monotonic() + FLUSH_SECONDS
    while something_waits():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def something_waits() -> bool:
    """True if a hit or a refused hit is not in the tables yet, or a visitor that Redis knows."""
    redis = get_redis_connection("hitcount")
    patterns = ("hitcount:*:{*}:*:pending", "hitcount:*:{*}:*:batch")
    if any(key for pattern in patterns for key in redis.scan_iter(pattern)):
        return True
    return MissedRecord.objects.exists()


def _show_failures(outcome: Outcome, output: TextIO) -> None:
    if outcome.failures:
        output.write(f"{len(outcome.failures):,} page requests FAILED:\n")
        output.writelines(f"  {failure}\n" for failure in outcome.failures[:FAILURES_SHOWN])
