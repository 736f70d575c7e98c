"""Cache what is computed from settings until one of them changes."""

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
