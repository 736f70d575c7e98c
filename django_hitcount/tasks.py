"""Celery tasks, and when to run them."""

from __future__ import annotations

from typing import Any

from celery import shared_task


@shared_task(name="django_hitcount.flush_hits", ignore_result=True)
def flush_hits(partitions: list[int] | None = None) -> None:
    """See flushing.flush()."""
    from django_hitcount.flushing import flush

    flush(partitions)


@shared_task(name="django_hitcount.compact_hits", ignore_result=True)
def compact_hits() -> None:
    """See compaction.compact()."""
    from django_hitcount.compaction import compact

    compact()


def flush_early(partition: int) -> None:
    """Flush a partition that grew full, without waiting for the schedule."""
    flush_hits.apply_async(args=[[partition]], retry=False)


def beat_schedule(
    *, flush_seconds: float = 10, compact_seconds: float = 600
) -> dict[str, dict[str, Any]]:
    """
    Entries for Celery beat: ``app.conf.beat_schedule |= beat_schedule()``.

    A run that waits for a worker longer than its pause is dropped, as the next one does
    its work.
    """
    pauses = {flush_hits.name: flush_seconds, compact_hits.name: compact_seconds}
    return {
        name: {"task": name, "schedule": seconds, "options": {"expires": seconds}}
        for name, seconds in pauses.items()
    }
