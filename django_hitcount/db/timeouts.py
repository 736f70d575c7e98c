"""The timeouts of a database. Nothing else limits how long a page waits for one that hangs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from django.db.backends.base.base import BaseDatabaseWrapper

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
"""OPTIONS that limit how long a page waits, by vendor. docs/operations.rst explains them."""

_NAMES = ("timeout", "max_statement_time", "max_execution_time")
"""The names of all settings that limit a wait contain one of these."""

_FILES = ("service", "read_default_file", "read_default_group")
"""Options that name a file, which may contain such settings."""

_ENVIRONMENT = ("PGCONNECT_TIMEOUT", "PGOPTIONS", "PGSERVICE")
"""Variables from which libpq reads further options."""


def has_timeout(connection: BaseDatabaseWrapper) -> bool:
    """
    Return whether the settings of a database contain a timeout of any kind, or may do so.

    Looks for one of the names in any text in OPTIONS: there are too many drivers and spellings to
    know them all. A project that sets one timeout is expected to know the others.
    """
    options = connection.settings_dict["OPTIONS"]
    if any(option in options for option in _FILES):
        return True
    if connection.vendor == "postgresql" and any(name in os.environ for name in _ENVIRONMENT):
        return True
    return any(name in str(dict(options)) for name in _NAMES)
