"""Throttles, and the times of their admissions."""

from __future__ import annotations

from django_hitcount.db.tables import Admission
from django_hitcount.throttle import Throttle

HOUR = 3600
BLINK = 0.05


def admit(name: str = "mail", seconds: float = HOUR) -> bool:
    return Throttle(name, seconds).admit()


def times() -> tuple[int, int]:
    return Admission.objects.values_list("admitted_at", "expires_at").get()
