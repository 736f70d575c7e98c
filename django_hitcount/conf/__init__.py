"""
The HITCOUNT setting: read, checked and typed. Other wings call get_config().

The lengths of columns are here, too: no setting changes them, and changing one needs a migration.
"""

from __future__ import annotations

from django_hitcount.conf.config import (
    DEFAULT_COUNTER,
    MOST_PARTITIONS,
    Config,
    CounterOptions,
    find_setting_errors,
    get_config,
)
from django_hitcount.conf.kinds import (
    COUNTER_MAX_LENGTH,
    SettingError,
    import_dotted_path,
    is_asynchronous,
    is_counter_name,
)

__all__ = [
    "COUNTER_MAX_LENGTH",
    "DEFAULT_COUNTER",
    "MOST_PARTITIONS",
    "Config",
    "CounterOptions",
    "SettingError",
    "find_setting_errors",
    "get_config",
    "import_dotted_path",
    "is_asynchronous",
    "is_counter_name",
]

REFUSAL_MAX_LENGTH = 50
"""Column ``refusal``: the names of refusals follow the rule for the names of counters."""

OBJECT_ID_MAX_LENGTH = 255
"""Columns ``object_id``: the longest unique CharField that Django allows on MySQL."""

DATABASE_ALIAS_MAX_LENGTH = 255
"""Columns that name a database: Django sets no limit, and aliases are far shorter."""

VISITOR_KEY_MAX_LENGTH = 40
"""Columns ``visitor_key``: the id of a VisitorKey has 22 characters."""

ADMISSION_NAME_MAX_LENGTH = 200
"""Column ``name`` of an admission: a prefix and the name of a throttle."""

THROTTLE_NAME_MAX_LENGTH = 150
"""Characters of the name of a throttle: leaves room for the prefix of an admission."""

ADDRESS_NAME_LENGTH = 43
"""Column ``name`` of a counted address: a date, a colon and 32 hexadecimal digits."""

GENERATION_MAX_LENGTH = 100
"""Column ``generation``: a run id, a colon and 32 hexadecimal digits are 73 characters."""

REASON_MAX_LENGTH = 200
"""Column ``reason`` of a correction: a sentence."""

USERNAME_MAX_LENGTH = 150
"""Column ``made_by``: the length of a username in django.contrib.auth. Longer names are cut."""

RUN_ID_MAX_LENGTH = 40
"""Column ``run_id``: Redis uses 40 hexadecimal digits."""
