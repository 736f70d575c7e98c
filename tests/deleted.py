"""What is left of deleted objects, and the time that passes after they are deleted."""

from __future__ import annotations

import datetime

from django_hitcount.db.tables import DailyHitSlot, DeletedObject, HitSlot


def is_nothing_left() -> bool:
    return not (HitSlot.objects.exists() or DailyHitSlot.objects.exists())


def let_pass(time: datetime.timedelta) -> None:
    """Shift the time at which objects were deleted into the past."""
    for row in DeletedObject.objects.all():
        row.deleted_at -= time
        row.due_at -= time
        row.save()
