"""Import what a dotted path names."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.utils.module_loading import import_string


def import_dotted_path(path: str) -> Any:
    """Import what ``path`` names. Raises ImportError, also if ``path`` is not a dotted path."""
    if not all(part.isidentifier() for part in path.split(".")):
        raise ImportError(f"{path!r} is not a dotted path")
    return import_string(path)


def is_asynchronous(function: Callable[..., object]) -> bool:
    """Return whether calling ``function`` returns a coroutine."""
    return any(map(iscoroutinefunction, (function, type(function).__call__)))
