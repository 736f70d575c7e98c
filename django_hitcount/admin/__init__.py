"""The admin: reports of hits, and what a ModelAdmin inherits to show them."""

from __future__ import annotations

from django_hitcount.admin.objects import HitCountAdmin

__all__ = ["HitCountAdmin"]
