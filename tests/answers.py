"""Statements that fail, and answers that get lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db import OperationalError, connections


@contextmanager
def lost_commit_answer() -> Iterator[None]:
    """The next COMMIT happens, and its answer does not arrive."""
    wrapper: Any = type(connections["default"])
    commit = wrapper._commit
    answers = [OperationalError("server has gone away")]

    def commit_and_lose_the_answer(self: Any) -> None:
        commit(self)
        if answers:
            raise answers.pop()

    with mock.patch.object(wrapper, "_commit", commit_and_lose_the_answer):
        yield
    assert not answers


@contextmanager
def failing_at_first(owner: object, name: str, error: Exception, *, times: int) -> Iterator[None]:
    """A function of ``owner`` raises an error a number of times, and then works."""
    original = getattr(owner, name)
    errors = [error] * times

    def fail(*args: Any, **kwargs: Any) -> Any:
        if errors:
            raise errors.pop()
        return original(*args, **kwargs)

    with mock.patch.object(owner, name, fail):
        yield
    assert not errors
