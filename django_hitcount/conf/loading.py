"""Load what a dotted path names."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.utils.module_loading import import_string


def imported(path: str) -> Any:
    """What a dotted path names; raises ImportError, also for what is no dotted path."""
    if not all(part.isidentifier() for part in path.split(".")):
        raise ImportError(f"{path!r} is no dotted path")
    return import_string(path)


def is_asynchronous(function: Callable[..., object]) -> bool:
    """Whether a call of ``function`` gives a coroutine, which is true and nobody awaits."""
    return any(map(iscoroutinefunction, (function, type(function).__call__)))
