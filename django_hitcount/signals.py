"""Signals that django_hitcount sends."""

from __future__ import annotations

from django.dispatch import Signal

partition_full = Signal()
"""A partition came to hold more than FLUSH_THRESHOLD counters; argument: ``partition``."""
