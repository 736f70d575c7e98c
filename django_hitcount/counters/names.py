"""Names: whether they are declared counters, and whether a class has an attribute of one."""

from __future__ import annotations

import functools

from django.db import models
from django.utils.functional import cached_property

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


def is_part_of_class(model: type[models.Model], name: str) -> bool:
    """
    Return whether an attribute ``name`` would hide a field, a method, a property or a manager.

    It may hide a plain value, which is only a default, and a cached property.
    """
    found = next((vars(cls)[name] for cls in model.__mro__ if name in vars(cls)), None)
    if isinstance(found, cached_property | functools.cached_property):
        return False
    return callable(found) or hasattr(found, "__get__")
