"""A model field that holds the total of a counter, to sort and filter by."""

from __future__ import annotations

from django_hitcount.db.total_columns import HitCountField

__all__ = ["HitCountField"]
