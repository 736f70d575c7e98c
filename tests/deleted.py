"""What is left of deleted objects, and how their time passes."""

from __future__ import annotations

import datetime

from django_hitcount.db.tables import DailyHitSlot, DeletedObject, HitSlot


def is_nothing_left() -> bool:
    return not (HitSlot.objects.exists() or DailyHitSlot.objects.exists())


def let_pass(time: datetime.timedelta) -> None:
    """As if so much time had passed since objects were deleted."""
    for row in DeletedObject.objects.all():
        row.deleted_at -= time
        row.due_at -= time
        row.save()
