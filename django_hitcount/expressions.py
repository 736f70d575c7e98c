"""Expressions for querysets: SumOfHits."""

from __future__ import annotations

from django_hitcount.db.expressions import SumOfHits

__all__ = ["SumOfHits"]
