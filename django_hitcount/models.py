"""Everything that a project imports from here; Django finds the tables through it."""

from __future__ import annotations

from django_hitcount.mixins import HitCountMixin
from django_hitcount.querysets import HitCountQuerySet
from django_hitcount.tables import DailyHitSlot, FlushedBatch, HitSlot, MissedRecord

__all__ = [
    "DailyHitSlot",
    "FlushedBatch",
    "HitCountMixin",
    "HitCountQuerySet",
    "HitSlot",
    "MissedRecord",
]
