"""Call the filter of repeat visitors by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django_hitcount.buffers.redis.bloom import Geometry
from django_hitcount.buffers.redis.scripts import Command, read_source

SEE = read_source("seen_before") + Path(__file__).with_name("lua").joinpath("see.lua").read_text()


def see_command(
    key: str, visitors: Sequence[bytes], *, geometry: Geometry, ttl_seconds: int
) -> Command:
    """Add visitors to a filter; the reply is how many of them were seen before."""
    return ("EVAL", SEE, 1, key, geometry.for_script, ttl_seconds, *visitors)


def capacity(geometry: Geometry, layers: int) -> int:
    """How many visitors full layers hold."""
    return geometry.first_capacity * ((1 << layers) - 1)
