"""
The geometry of the filters that recognise repeat visitors.

A filter is a scalable Bloom filter (Almeida, Baquero, Preguica & Hutchison 2007, "Scalable
Bloom Filters", Information Processing Letters 101) in one Redis string, which
``lua/seen_before.lua`` reads and writes::

    size (32 bits) | geometry (32 bits) | layer 0 | layer 1 | ...

An entry that is in no layer is added to the last layer. When that is full, a layer of twice its
size is added. The answer for a new entry is wrong if any layer is wrong, so the rates of the layers
must add up to the wanted rate::

    rate of layer i      P_i = rate * (1 - TIGHTENING) * TIGHTENING^i, which sums up to rate
    entries in layer i   first_capacity * 2^i
    hashes in layer i    k_i = SHARE_OF_HASHES * log2(1 / P_i), rounded up
    bits for each entry  BITS_PER_HALVING * log2(1 / P_i)

A layer of m bits with n entries of k hashes is wrong for (1 - e^(-k n / m))^k of new entries
(Bloom 1970). As log2(1 / P_i) grows by the same with each layer, five numbers describe the whole
geometry, and sums over layers have a closed form, which a script computes in exact arithmetic.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cached_property

TIGHTENING = 0.9
"""
The rate of a layer, divided by the rate of the layer before it. Almeida et al. recommend 0.8 to
0.9. Nearer to 1, the first layer takes more bits and the last ones less. With 0.9 and an error rate
of 1 in 1,000, no filter that fits into a Redis string takes more than 24 bits per entry when its
last layer is full.
"""

SHARE_OF_HASHES = 0.75
"""
The number of hashes, divided by the number with which a layer is smallest. A quarter fewer save a
quarter of the time for a new entry, and cost 3 % of memory.
"""

BITS_PER_HALVING = SHARE_OF_HASHES / -math.log(1 - 2 ** (-1 / SHARE_OF_HASHES))
"""Bits per entry that halve the rate: 1.48. With all hashes, they would be 1 / ln 2 = 1.44."""


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """The sizes of a filter's layers."""

    rate: float
    """Largest share of new entries that count as seen before, however many there are."""

    first_capacity: int = 1000
    """Entries in layer 0."""

    @cached_property
    def for_script(self) -> bytes:
        """
        The five numbers that describe the geometry, packed for the script.

        They are the entries of layer 0, its bits, the bits that each further layer adds to them
        (before the size doubles), the hashes of layer 0, and the hashes that each further layer
        adds to them.
        """
        halvings = -math.log2(self.rate * (1 - TIGHTENING))  # log2(1 / P_0)
        more_halvings = -math.log2(TIGHTENING)
        bits = self.first_capacity * BITS_PER_HALVING
        return struct.pack(
            ">IIIdd",
            self.first_capacity,
            math.ceil(bits * halvings),
            math.ceil(bits * more_halvings),
            SHARE_OF_HASHES * halvings,
            SHARE_OF_HASHES * more_halvings,
        )
