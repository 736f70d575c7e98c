"""Celery tasks, and when to run them."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task

from django_hitcount.exceptions import BufferUnavailable

logger = logging.getLogger("django_hitcount")

SHARE_OF_PAUSE = 0.9
"""Part of a pause within which no second run begins: a schedule that is a bit early is no other."""


@shared_task(name="django_hitcount.flush_hits", ignore_result=True)
def flush_hits(partitions: list[int] | None = None, *, at_most_every: float | None = None) -> None:
    """
    See flushing.flush(); does nothing if another run began less than that many seconds ago.

    So two schedulers do not flush twice as often as one.
    """
    from django_hitcount.maintenance.flushing import flush

    if _is_due(flush_hits.name, at_most_every):
        flush(partitions)


@shared_task(name="django_hitcount.compact_hits", ignore_result=True)
def compact_hits(*, at_most_every: float | None = None) -> None:
    """See upkeep.run_upkeep() and, for ``at_most_every``, flush_hits()."""
    from django_hitcount.maintenance.upkeep import run_upkeep

    if _is_due(compact_hits.name, at_most_every):
        run_upkeep()


def _is_due(task: str, at_most_every: float | None) -> bool:
    from django_hitcount.throttle import Throttle

    if at_most_every is None:
        return True
    try:
        return Throttle(task, SHARE_OF_PAUSE * at_most_every).admit()
    except BufferUnavailable as exc:
        logger.warning("%s runs though nobody knows when it did last: %s", task, exc)
        return True  # A run too many does no harm.


def flush_early(partition: int) -> None:
    """Flush a partition that grew full, without waiting for the schedule."""
    flush_hits.apply_async(args=[[partition]], retry=False)


def beat_schedule(
    *, flush_seconds: float = 10, compact_seconds: float = 600
) -> dict[str, dict[str, Any]]:
    """
    Entries for Celery beat: ``app.conf.beat_schedule |= beat_schedule()``.

    A run that waits for a worker longer than its pause is dropped, as the next one does
    its work; and so is one that another scheduler sends in between.
    """
    pauses = {flush_hits.name: flush_seconds, compact_hits.name: compact_seconds}
    return {
        name: {
            "task": name,
            "schedule": seconds,
            "kwargs": {"at_most_every": seconds},
            "options": {"expires": seconds},
        }
        for name, seconds in pauses.items()
    }
