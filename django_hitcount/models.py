"""The models, the mixin and the querysets. Django and projects import them from here."""

from __future__ import annotations

from django_hitcount.db.tables import (
    Admission,
    CountedAddress,
    DailyHitSlot,
    DailyVisitors,
    DeletedObject,
    FlushedBatch,
    HitSlot,
    MissedRecord,
    RefusedHitSlot,
    SeenVisitor,
    VisitorSalt,
)
from django_hitcount.mixins import HitCountMixin
from django_hitcount.querysets import HitCountManager, HitCountQuerySet, with_hits, with_visitors

__all__ = [
    "Admission",
    "CountedAddress",
    "DailyHitSlot",
    "DailyVisitors",
    "DeletedObject",
    "FlushedBatch",
    "HitCountManager",
    "HitCountMixin",
    "HitCountQuerySet",
    "HitSlot",
    "MissedRecord",
    "RefusedHitSlot",
    "SeenVisitor",
    "VisitorSalt",
    "with_hits",
    "with_visitors",
]
