"""What tests say of the periods of reports."""

from __future__ import annotations

from django_hitcount.reports.selection import Period


def span(period: Period) -> tuple[str, str]:
    """The first and the last day."""
    return period.first_day.isoformat(), period.last_day.isoformat()
