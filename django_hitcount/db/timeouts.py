"""Whether anything limits how long a page waits for a database that hangs: nothing of ours can."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from django.db import connections

ADVISED: Mapping[str, Mapping[str, object]] = {
    "postgresql": {
        "connect_timeout": 2,
        "tcp_user_timeout": 2000,
        "options": "-c lock_timeout=1s -c statement_timeout=5s",
    },
    "mysql": {
        "connect_timeout": 2,
        "read_timeout": 5,
        "write_timeout": 5,
        "init_command": "SET innodb_lock_wait_timeout=1, lock_wait_timeout=1",
    },
}
"""By vendor, OPTIONS that limit what a page waits for; docs/operations.rst explains them."""

_NAMES = ("timeout", "max_statement_time", "max_execution_time")
"""What is part of the names of all settings that limit a wait."""

_FILES = ("service", "read_default_file", "read_default_group")
"""Options that name a file, in which such settings may be."""

_ENVIRONMENT = ("PGCONNECT_TIMEOUT", "PGOPTIONS", "PGSERVICE")
"""Where libpq finds options, too."""


def check_timeouts(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W009: nothing limits how long a page waits for the database of the counts."""
    from django_hitcount.db.routing import hits_alias

    connection = connections[hits_alias()]
    advised = ADVISED.get(connection.vendor)
    if not advised or _has_timeout(connection.vendor, connection.settings_dict["OPTIONS"]):
        return []
    return [
        CheckWarning(
            f"Nothing limits how long a page waits for the database {connection.alias!r}, "
            "which keeps the counts, if it hangs.",
            hint=f'Set DATABASES[{connection.alias!r}]["OPTIONS"] to {dict(advised)!r}, or to what '
            "your longest queries need.",
            id="django_hitcount.W009",
        )
    ]


def _has_timeout(vendor: str, options: Mapping[str, object]) -> bool:
    if any(option in options for option in _FILES):
        return True
    if vendor == "postgresql" and any(name in os.environ for name in _ENVIRONMENT):
        return True
    return any(name in str(dict(options)) for name in _NAMES)
