"""Celery tasks, and a schedule for them."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task

from django_hitcount.exceptions import BufferUnavailable

logger = logging.getLogger("django_hitcount")

SHARE_OF_PAUSE = 0.9
"""Share of a pause in which no second run begins. Not all of it, since a scheduler may be early."""


@shared_task(name="django_hitcount.flush_hits", ignore_result=True)
def flush_hits(partitions: list[int] | None = None, *, at_most_every: float | None = None) -> None:
    """
    Write the hits that wait in the buffer into the tables; see flushing.flush().

    Args:
        partitions: the numbers of the partitions to flush. None means all.
        at_most_every: seconds. Does nothing if another run with this argument began less than
            that ago, so that two schedulers do not flush twice as often as one.
    """
    from django_hitcount.maintenance.flushing import flush

    if _is_due(flush_hits.name, at_most_every):
        flush(partitions)


@shared_task(name="django_hitcount.compact_hits", ignore_result=True)
def compact_hits(*, at_most_every: float | None = None) -> None:
    """Keep the tables small; see upkeep.run_upkeep(). ``at_most_every`` is that of flush_hits()."""
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
        logger.warning("%s runs without knowing when it last ran: %s", task, exc)
        return True  # One run too many does no harm.


def flush_early(partition: int) -> None:
    """Send the task that flushes a full partition, without waiting for the schedule."""
    flush_hits.apply_async(args=[[partition]], retry=False)


def beat_schedule(
    *, flush_seconds: float = 10, compact_seconds: float = 600
) -> dict[str, dict[str, Any]]:
    """
    Entries for Celery beat: ``app.conf.beat_schedule |= beat_schedule()``.

    Both arguments are seconds between two runs. Celery drops a run that has waited that long
    for a worker, because the next one does its work. A run that another scheduler sends in
    between does nothing.
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
