"""The names of counters."""

from __future__ import annotations

from django_hitcount import conf
from django_hitcount.exceptions import UnknownCounter


def check_counter(counter: str) -> str:
    """Return ``counter``; raise UnknownCounter if HITCOUNT does not declare it."""
    if counter not in conf.get_config().counters:
        raise UnknownCounter(
            f"Unknown counter {counter!r}. Declare it in settings: "
            f'HITCOUNT = {{"COUNTERS": {{{str(counter)!r}: {{}}}}}}.'
        )
    return counter
