"""Replays an access log on the running site and proves the counts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TextIO

from blog.models import Article
from django.contrib.contenttypes.models import ContentType
from django.core.management.base import CommandError
from django.db.models import Sum
from django_redis import get_redis_connection

from demo.access_log import AccessLog, parse_log
from demo.progress import Progress
from demo.report import Report
from demo.sending import Outcome, send_all
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.keys import PartitionKeys
from django_hitcount.conf import get_config
from django_hitcount.models import HitSlot, MissedRecord

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
    if not log.page_views:
        raise CommandError(f"{file} has no page view in Apache's combined format.")
    return log


def replay(log: AccessLog, *, port: int, output: TextIO) -> bool:
    """Was every page view answered, and does the table hold just these hits?"""
    output.write(
        f"{len(log.page_views):,} page views to send; {log.others:,} other requests "
        f"and {log.malformed:,} malformed lines are left out.\n"
    )
    progress = Progress(len(log.page_views), output)
    outcome = send_all(log.page_views, host="127.0.0.1", port=port, advance=progress.advance)
    _show_failures(outcome, output)
    output.write("Waiting for the Celery worker to flush the last hits ...\n")
    output.flush()
    if not wait_for_flush():
        output.write(f"After {FLUSH_SECONDS:.0f} seconds there are still hits in the buffer.\n")
    report = Report.compare(outcome.answered, stored_hits(), failures=len(outcome.failures))
    output.writelines(f"{line}\n" for line in report.lines())
    return report.agrees


def wait_for_flush() -> bool:
    deadline = time.monotonic() + FLUSH_SECONDS
    while hits_are_waiting():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def hits_are_waiting() -> bool:
    partitions = [PartitionKeys(number) for number in get_buffer().partitions()]
    keys = [key for names in partitions for key in (names.pending, names.batch_id)]
    if keys and get_redis_connection(get_config().cache_alias).exists(*keys):
        return True
    return MissedRecord.objects.exists()


def stored_hits() -> dict[str, int]:
    """Views by path, straight from the table: what the app itself says is not asked."""
    sums = (
        HitSlot.objects.filter(
            content_type=ContentType.objects.get_for_model(Article), counter="views"
        )
        .values_list("object_id")
        .annotate(Sum("hits"))
    )
    paths = {str(pk): path for pk, path in Article.objects.values_list("pk", "path")}
    return {paths[object_id]: hits for object_id, hits in sums}


def _show_failures(outcome: Outcome, output: TextIO) -> None:
    if outcome.failures:
        output.write(f"{len(outcome.failures):,} page views FAILED:\n")
        output.writelines(f"  {failure}\n" for failure in outcome.failures[:FAILURES_SHOWN])
