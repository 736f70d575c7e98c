"""Call the filter of repeat visitors by itself, and compute its layout apart from the script."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from django_hitcount.buffers.redis.scripts import Command, read_source

MARK_BYTES = 3

BUCKET_BYTES = 128 * MARK_BYTES

FIRST_BUCKETS = 8

SEE = read_source("seen_before") + Path(__file__).with_name("lua").joinpath("see.lua").read_text()


def see_command(key: str, visitors: Sequence[bytes], *, ttl_seconds: int) -> Command:
    """Add visitors to a filter; the reply is how many of them were seen before."""
    return ("EVAL", SEE, 1, key, ttl_seconds, *visitors)


def length(layers: int) -> int:
    """How many bytes a filter with these layers has."""
    return FIRST_BUCKETS * BUCKET_BYTES * ((1 << layers) - 1)


def bucket_of(entry: bytes, layer: int) -> int:
    """Where the bucket of an entry begins in a layer."""
    buckets = FIRST_BUCKETS << layer
    return length(layer) + int.from_bytes(entry[:6]) % buckets * BUCKET_BYTES


def count_marks(filled: bytes) -> int:
    """How many marks a filter has."""
    marks = (filled[n : n + MARK_BYTES] for n in range(0, len(filled), MARK_BYTES))
    return sum(mark != bytes(MARK_BYTES) for mark in marks)
