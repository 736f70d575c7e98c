"""
The HITCOUNT setting: read, checked and typed. Other wings call get_config().

The lengths of columns that others check are here, too: no setting changes them, and changing one
needs a migration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import ParamSpec, TypeVar

from django.core.signals import setting_changed

from django_hitcount.conf.config import DEFAULT_COUNTER as DEFAULT_COUNTER
from django_hitcount.conf.config import MOST_PARTITIONS as MOST_PARTITIONS
from django_hitcount.conf.config import Config as Config
from django_hitcount.conf.config import CounterOptions as CounterOptions
from django_hitcount.conf.config import read_setting
from django_hitcount.conf.kinds import COUNTER_MAX_LENGTH as COUNTER_MAX_LENGTH
from django_hitcount.conf.kinds import SettingError as SettingError
from django_hitcount.conf.kinds import import_dotted_path as import_dotted_path
from django_hitcount.conf.kinds import is_counter_name as is_counter_name
from django_hitcount.conf.kinds import load_function as load_function

P = ParamSpec("P")
T = TypeVar("T")

REFUSAL_MAX_LENGTH = 50
"""Column ``refusal``: the names of refusals follow the rule for the names of counters."""

OBJECT_ID_MAX_LENGTH = 255
"""Columns ``object_id``: the longest unique CharField that Django allows on MySQL."""

PATH_MAX_LENGTH = 500
"""Column ``path`` of a page: with a unique key, MySQL takes up to 700 characters."""

VISITOR_KEY_MAX_LENGTH = 40
"""Columns ``visitor_key``: the id of a VisitorKey has 22 characters."""

THROTTLE_NAME_MAX_LENGTH = 150
"""Characters of the name of a throttle: leaves room for the prefix of an admission."""

IMPORT_ID_MAX_LENGTH = 200
"""Column ``name`` of an import: a source, and perhaps the names of some files."""

REASON_MAX_LENGTH = 200
"""Column ``reason`` of a correction: a sentence."""

USERNAME_MAX_LENGTH = 150
"""Column ``made_by``: the length of a username in django.contrib.auth. Longer names are cut."""


def cached_for_settings(
    *names: str, maxsize: int | None = None
) -> Callable[[Callable[P, T]], _lru_cache_wrapper[T]]:
    """
    Decorate a function to cache its results until one of the settings ``names`` changes.

    Tests may therefore override settings. Keeps at most ``maxsize`` results, or all of them.
    """

    def decorate(function: Callable[P, T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(maxsize)(function)

        def clear(*, setting: str, **kwargs: object) -> None:
            if setting in names:
                cached.cache_clear()

        place = f"{function.__module__}.{function.__qualname__}"
        setting_changed.connect(clear, weak=False, dispatch_uid=place)
        return cached

    return decorate


@cached_for_settings("HITCOUNT")
def get_config() -> Config:
    """
    Return HITCOUNT as a typed, immutable object; cached until the setting changes.

    Raises ImproperlyConfigured for the first error.
    """
    config, errors = read_setting()
    if errors:
        raise errors[0]
    return config


def find_setting_errors() -> list[SettingError]:
    """Return everything that is wrong with HITCOUNT, for the system checks."""
    return read_setting()[1]
