"""Call the filter of repeat visitors by itself, and compute its geometry apart from the script."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

from django_hitcount.buffers.redis.bloom import Geometry
from django_hitcount.buffers.redis.scripts import Command, read_source

HEADER_BITS = 64
"""Before the first layer: the size and the geometry."""

SEE = read_source("seen_before") + Path(__file__).with_name("lua").joinpath("see.lua").read_text()


def see_command(
    key: str, visitors: Sequence[bytes], *, geometry: Geometry, ttl_seconds: int
) -> Command:
    """Add visitors to a filter; the reply is how many of them were seen before."""
    return ("EVAL", SEE, 1, key, geometry.for_script, ttl_seconds, *visitors)


def capacity(geometry: Geometry, layers: int) -> int:
    """How many visitors full layers hold."""
    return geometry.first_capacity * ((1 << layers) - 1)


def bits(geometry: Geometry, layers: int) -> int:
    """How many bits a string with these layers has."""
    _, first, more, *_ = _numbers(geometry)
    scale = 1 << layers
    # The sum of the layers, each of which has 2^i * (first + i * more).
    return HEADER_BITS + first * (scale - 1) + more * ((layers - 2) * scale + 2)


def hashes(geometry: Geometry, layer: int) -> int:
    """How many bits an entry sets in a layer."""
    *_, first, more = _numbers(geometry)
    return math.ceil(first + more * layer)


def _numbers(geometry: Geometry) -> tuple[int, int, int, float, float]:
    return struct.unpack(">IIIdd", geometry.for_script)
