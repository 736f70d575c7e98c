"""Statements as text."""

from __future__ import annotations

from typing import Any

Sql = tuple[str, list[Any]]
"""A statement, or a part of one, and its parameters."""
