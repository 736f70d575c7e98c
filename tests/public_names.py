"""The names that a project may use, as the code declares them."""

from __future__ import annotations

from importlib import import_module

import django_hitcount

FUNCTIONS = frozenset(django_hitcount.__all__)

MODULES = (
    "models",
    "fields",
    "admin",
    "views",
    "rest_framework",
    "tasks",
    "signals",
    "exceptions",
    "defaults",
    "refusals",
    "testing",
    "pages.middleware",
    "pages.models",
    "importing",
)


def of_module(name: str) -> set[str]:
    """Return the public names of a module."""
    return {*import_module(f"django_hitcount.{name}").__all__}
