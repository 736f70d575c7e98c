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
    """Describe an error for people, with its step. Each error of a group has its own line."""
    text = error.message if isinstance(error, ExceptionGroup) else str(error)
    if notes := ", ".join(getattr(error, "__notes__", ())):
        text = f"{text} ({notes})"
    return "\n".join([text, *map(describe_error, getattr(error, "exceptions", ()))])
