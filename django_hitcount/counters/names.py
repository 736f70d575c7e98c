"""The names of counters."""

from __future__ import annotations

from django_hitcount import conf
from django_hitcount.exceptions import UnknownCounter


def check_counter(counter: str) -> str:
    """Return ``counter``; raise UnknownCounter if it is no str or HITCOUNT does not declare it."""
    # Not isinstance(): a lazy text would pass, and no driver of a database takes it.
    if not issubclass(type(counter), str):
        raise UnknownCounter(
            f"Invalid counter: {counter!r} has the type {type(counter).__name__}. "
            "Pass its name as a str."
        )
    if counter not in conf.get_config().counters:
        raise UnknownCounter(
            f"Unknown counter {counter!r}. Declare it in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{str(counter)!r}: {{}}}}}}.'
        )
    return counter
