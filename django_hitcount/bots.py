"""Find out whether a user agent belongs to a bot. For a project's own code."""

from __future__ import annotations

from django_hitcount.refusals.built_in import is_bot

__all__ = ["is_bot"]
