"""Celery tasks, and a schedule for them."""

from __future__ import annotations

import logging
from typing import Any

from celery import shared_task

from django_hitcount.exceptions import BufferUnavailable

__all__ = ["beat_schedule", "compact_hits", "flush_hits"]

logger = logging.getLogger("django_hitcount")

SHARE_OF_PAUSE = 0.9
"""No second run begins within this share of ``at_most_every``: a scheduler may be a bit early."""


@shared_task(name="django_hitcount.flush_hits", ignore_result=True)
def flush_hits(partitions: list[int] | None = None, *, at_most_every: float | None = None) -> None:
    """
    Write the hits that wait in the buffer into the tables; see the function flush_hits().

    Args:
        partitions: the numbers of the partitions to flush. None means all.
        at_most_every: seconds. If another run with this argument began within that time, does
            nothing. So two schedulers do not flush twice as often as one.
    """
    from django_hitcount.maintenance import flushing

    if _is_due(flush_hits.name, at_most_every):
        flushing.flush_hits(partitions)


@shared_task(name="django_hitcount.compact_hits", ignore_result=True)
def compact_hits(*, at_most_every: float | None = None) -> None:
    """
    Keep the tables small; see the function compact_hits(). For ``at_most_every``, see flush_hits().
    """
    from django_hitcount.maintenance import compaction

    if _is_due(compact_hits.name, at_most_every):
        compaction.compact_hits()


def _is_due(task: str, at_most_every: float | None) -> bool:
    from django_hitcount.throttle import Throttle

    if at_most_every is None:
        return True
    try:
        return Throttle(task, SHARE_OF_PAUSE * at_most_every).admit()
    except BufferUnavailable as exc:
        logger.warning("%s runs, although it cannot read when it last ran: %s", task, exc)
        return True  # An additional run does no harm.


def beat_schedule(
    *, flush_seconds: float = 10, compact_seconds: float = 600
) -> dict[str, dict[str, Any]]:
    """
    Return entries for Celery beat: ``app.conf.beat_schedule |= beat_schedule()``.

    Both arguments are the seconds between two runs. Shorter pauses leave fewer hits waiting in
    Redis, longer ones write fewer rows. If a run waits for a worker that long, Celery drops it,
    because the next run does its work. A run does nothing if one of another scheduler began less
    than nine tenths of the pause before it. ``flush_hits.delay()`` always flushes.
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
