"""The models, the mixin and the querysets. Django and projects import them from here."""

from __future__ import annotations

from django_hitcount.db.tables import (
    Admission,
    Correction,
    CountedAddress,
    DailyHitSlot,
    DailyModelHits,
    DailyVisitors,
    DeletedObject,
    HitSlot,
    LastBatch,
    MissedRecord,
    RefusedHitSlot,
    SeenVisitor,
    StaleTotal,
    VisitorSalt,
)
from django_hitcount.mixins import HitCountMixin
from django_hitcount.querysets import HitCountManager, HitCountQuerySet, with_hits, with_visitors

__all__ = [
    "Admission",
    "Correction",
    "CountedAddress",
    "DailyHitSlot",
    "DailyModelHits",
    "DailyVisitors",
    "DeletedObject",
    "HitCountManager",
    "HitCountMixin",
    "HitCountQuerySet",
    "HitSlot",
    "LastBatch",
    "MissedRecord",
    "RefusedHitSlot",
    "SeenVisitor",
    "StaleTotal",
    "VisitorSalt",
    "with_hits",
    "with_visitors",
]
