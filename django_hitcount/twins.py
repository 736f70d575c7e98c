"""Make the async twins of functions and methods."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")

ResultT = TypeVar("ResultT")


def async_twin(function: Callable[P, ResultT]) -> Callable[P, Coroutine[Any, Any, ResultT]]:
    """
    Make the async twin of a function. Its name begins with ``a``.

    sync_to_async() alone would hide its type, and a manager would not copy it from its queryset.
    """
    run = sync_to_async(function)
    owner, dot, name = function.__qualname__.rpartition(".")

    @wraps(function)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        return await run(*args, **kwargs)

    twin.__name__, twin.__qualname__ = f"a{name}", f"{owner}{dot}a{name}"
    twin.__doc__ = f"See {name}()."
    return twin


def async_method(method: Callable[P, ResultT]) -> Callable[P, Coroutine[Any, Any, ResultT]]:
    """Make the async twin of a method. It calls that of the object, whose class may override it."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ResultT:
        obj, *others = args
        result: ResultT = getattr(obj, method.__name__)(*others, **kwargs)
        return result

    return async_twin(call)
