from __future__ import annotations

from typing import Any


class Elsewhere:
    """Keeps the counts in another database than the objects."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "elsewhere" if model._meta.app_label == "django_hitcount" else None

    db_for_write = db_for_read


class Replica:
    """Reads everything from a replica, which lags behind."""

    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "elsewhere"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "default"
