"""Everything that a project imports from here; Django finds the tables through it."""

from __future__ import annotations

from django_hitcount.mixins import HitCountMixin
from django_hitcount.querysets import HitCountQuerySet
from django_hitcount.tables import (
    Admission,
    DailyHitSlot,
    DailyVisitors,
    FlushedBatch,
    HitSlot,
    MissedRecord,
    RefusedHitSlot,
    SeenVisitor,
    VisitorSalt,
)

__all__ = [
    "Admission",
    "DailyHitSlot",
    "DailyVisitors",
    "FlushedBatch",
    "HitCountMixin",
    "HitCountQuerySet",
    "HitSlot",
    "MissedRecord",
    "RefusedHitSlot",
    "SeenVisitor",
    "VisitorSalt",
]
