"""Keep what was made from settings until one of them changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import ParamSpec, TypeVar

from django.core.signals import setting_changed

P = ParamSpec("P")
T = TypeVar("T")


def cached_for_settings(
    *names: str, maxsize: int | None = None
) -> Callable[[Callable[P, T]], _lru_cache_wrapper[T]]:
    """
    Decorate a function to keep its results until one of the settings ``names`` changes.

    So tests may override settings, and no function reads one that is out of date.
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
