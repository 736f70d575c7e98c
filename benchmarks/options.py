"""The options of the command line, and the buffer to use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from django.test import override_settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    quick: bool
    """Run for a short time, which shows only that everything works."""

    databases: Sequence[str]
    """Names of the databases to measure."""

    visitors: int
    """How many visitors to distinguish."""

    objects: int
    """How many objects to rank."""


def buffer(name: str, **settings: object) -> AbstractContextManager[Any]:
    """Use the buffer ``redis`` or ``database``, with further ``settings`` of HITCOUNT."""
    alias = {"redis": "hitcount", "database": None}[name]
    return override_settings(HITCOUNT={"REDIS": alias, **settings})
