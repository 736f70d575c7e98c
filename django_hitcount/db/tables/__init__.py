"""The tables."""

from __future__ import annotations

from django_hitcount.db.tables.bookkeeping import DeletedObject, FlushedBatch, MissedRecord
from django_hitcount.db.tables.hits import DailyHitSlot, HitSlot, RefusedHitSlot
from django_hitcount.db.tables.rows import CounterRow, SlotRow
from django_hitcount.db.tables.visitors import (
    Admission,
    CountedAddress,
    DailyVisitors,
    SeenVisitor,
    VisitorSalt,
)

__all__ = [
    "Admission",
    "CountedAddress",
    "CounterRow",
    "DailyHitSlot",
    "DailyVisitors",
    "DeletedObject",
    "FlushedBatch",
    "HitSlot",
    "MissedRecord",
    "RefusedHitSlot",
    "SeenVisitor",
    "SlotRow",
    "VisitorSalt",
]
