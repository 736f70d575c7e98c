"""The tables."""

from __future__ import annotations

from django_hitcount.db.tables.bookkeeping import (
    Correction,
    DeletedObject,
    LastBatch,
    MissedRecord,
    StaleTotal,
)
from django_hitcount.db.tables.hits import (
    CounterRow,
    DailyHitSlot,
    DailyModelHits,
    HitSlot,
    RefusedHitSlot,
    SlotRow,
)
from django_hitcount.db.tables.visitors import (
    Admission,
    CountedAddress,
    DailyVisitors,
    SeenVisitor,
    VisitorSalt,
)

__all__ = [
    "Admission",
    "Correction",
    "CountedAddress",
    "CounterRow",
    "DailyHitSlot",
    "DailyModelHits",
    "DailyVisitors",
    "DeletedObject",
    "HitSlot",
    "LastBatch",
    "MissedRecord",
    "RefusedHitSlot",
    "SeenVisitor",
    "SlotRow",
    "StaleTotal",
    "VisitorSalt",
]
