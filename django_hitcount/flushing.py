"""What the task and the command flush_hits do. For a project's own code."""

from __future__ import annotations

from django_hitcount.maintenance.flushing import Flush, flush

__all__ = ["Flush", "flush"]
