"""Exact, cheap, sharded view counters for Django."""

from __future__ import annotations
