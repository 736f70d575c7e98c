"""The HITCOUNT setting: read, checked and typed. Other wings call get_config()."""

from __future__ import annotations

from django_hitcount.conf.config import (
    DEFAULT_COUNTER,
    Config,
    CounterOptions,
    find_setting_errors,
    get_config,
)
from django_hitcount.conf.kinds import (
    SettingError,
    import_dotted_path,
    is_asynchronous,
    is_counter_name,
)
from django_hitcount.conf.limits import (
    ADDRESS_NAME_LENGTH,
    ADMISSION_NAME_MAX_LENGTH,
    COUNTER_MAX_LENGTH,
    DATABASE_ALIAS_MAX_LENGTH,
    GENERATION_MAX_LENGTH,
    MOST_PARTITIONS,
    OBJECT_ID_MAX_LENGTH,
    REASON_MAX_LENGTH,
    REFUSAL_MAX_LENGTH,
    RUN_ID_MAX_LENGTH,
    THROTTLE_NAME_MAX_LENGTH,
    USERNAME_MAX_LENGTH,
    VISITOR_KEY_MAX_LENGTH,
)

__all__ = [
    "ADDRESS_NAME_LENGTH",
    "ADMISSION_NAME_MAX_LENGTH",
    "COUNTER_MAX_LENGTH",
    "DATABASE_ALIAS_MAX_LENGTH",
    "DEFAULT_COUNTER",
    "GENERATION_MAX_LENGTH",
    "MOST_PARTITIONS",
    "OBJECT_ID_MAX_LENGTH",
    "REASON_MAX_LENGTH",
    "REFUSAL_MAX_LENGTH",
    "RUN_ID_MAX_LENGTH",
    "THROTTLE_NAME_MAX_LENGTH",
    "USERNAME_MAX_LENGTH",
    "VISITOR_KEY_MAX_LENGTH",
    "Config",
    "CounterOptions",
    "SettingError",
    "find_setting_errors",
    "get_config",
    "import_dotted_path",
    "is_asynchronous",
    "is_counter_name",
]
