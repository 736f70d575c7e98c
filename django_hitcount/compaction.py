"""What the task and the command compact_hits do, and their steps. For a project's own code."""

from __future__ import annotations

from django_hitcount.maintenance.compaction import Compaction, compact, prune, run_upkeep

__all__ = ["Compaction", "compact", "prune", "run_upkeep"]
