"""
Defaults of settings that a project may want to extend::

    from django_hitcount.defaults import default_refusals

    HITCOUNT = {"REFUSALS": [*default_refusals, "django_hitcount.refusals.staff"]}
"""

from __future__ import annotations

__all__ = ["default_identities", "default_refusals"]

default_refusals = tuple(
    f"django_hitcount.refusals.{name}" for name in ("method", "prefetch", "bot")
)
"""What HITCOUNT["REFUSALS"] refuses by default, to extend it."""

default_identities = ("user", "session", "cookie", "address")
"""What HITCOUNT["VISITOR_IDENTITY"] tries by default, to extend it."""
