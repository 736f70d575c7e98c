"""What runs in the background: flush, compact, prune, forget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


@contextmanager
def run_all(message: str) -> Iterator[Callable[[str], AbstractContextManager[None]]]:
    """
    Run all steps of the block, whatever happens to some of them.

    Yields a function that takes what a step does, and returns a context manager for it.

    Raises an ExceptionGroup of the errors of all steps, each with a note that names its step.
    """
    errors: list[Exception] = []

    @contextmanager
    def step(doing: str) -> Iterator[None]:
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - it is raised after the other steps
            exc.add_note(f"while {doing}")
            errors.append(exc)

    yield step
    if errors:
        raise ExceptionGroup(message, errors)


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
