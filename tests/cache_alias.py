"""The cache alias of the buffer in Redis."""

from __future__ import annotations

NOWHERE = "redis://127.0.0.1:1/0"
"""The address of a Redis that is away: no server has this port."""


def change_alias(settings, **changes: object) -> None:
    """Change the cache alias of the buffer in Redis."""
    alias = {**settings.CACHES["hitcount"], **changes}
    settings.CACHES = {**settings.CACHES, "hitcount": alias}
