"""What a class of models uses its attributes for."""

from __future__ import annotations

import functools

from django.db import models
from django.utils.functional import cached_property


def is_part_of_class(model: type[models.Model], name: str) -> bool:
    """
    Return whether an attribute ``name`` would hide a field, a method, a property or a manager.

    It may hide a plain value, which is only a default, and a cached property.
    """
    found = next((vars(cls)[name] for cls in model.__mro__ if name in vars(cls)), None)
    if isinstance(found, cached_property | functools.cached_property):
        return False
    return callable(found) or hasattr(found, "__get__")
