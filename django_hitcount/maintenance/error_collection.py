"""Run all steps of a task, and raise their errors at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collect_errors(errors: list[Exception], doing: str) -> Iterator[None]:
    """Add the errors of the block to ``errors``, each with a note that names the step."""
    try:
        yield
    except Exception as exc:  # noqa: BLE001 - the caller raises it after the other steps
        exc.add_note(f"while {doing}")
        errors.append(exc)


def describe_error(error: Exception) -> str:
    """Describe an error for people. Each error of a group has its own line, with its step."""
    if not isinstance(error, ExceptionGroup):
        return str(error)
    return "\n".join([error.message, *_describe_members(error)])


def _describe_members(group: ExceptionGroup[Exception]) -> Iterator[str]:
    """Describe the errors of a group, and those of groups in it."""
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _describe_members(error)
        else:
            notes = ", ".join(getattr(error, "__notes__", ()))
            yield f"{error} ({notes})" if notes else str(error)
