"""Run all steps of a task, and raise their errors at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collect_errors(errors: list[Exception], doing: str) -> Iterator[None]:
    """Add the errors of the block to ``errors``, each with a note that names the step."""
    try:
        yield
    except ExceptionGroup as exc:
        errors.extend(exc.exceptions)  # Each has a note already.
    except Exception as exc:  # noqa: BLE001 - the caller raises it after the other steps
        exc.add_note(f"while {doing}")
        errors.append(exc)


def describe_error(error: Exception) -> str:
    """Describe an error for people. Each error of a group has its own line."""
    if not isinstance(error, ExceptionGroup):
        return str(error)
    lines = [f"{exc} ({', '.join(exc.__notes__)})" for exc in error.exceptions]
    return "\n".join([error.message, *lines])
