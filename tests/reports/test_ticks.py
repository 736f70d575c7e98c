from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_hitcount.reports.charts import nice_ticks


@pytest.mark.parametrize(
    ("lowest", "highest", "ticks"),
    [
        (0, 0, [0, 1]),
        (0, 1, [0, 1]),
        (3, 4, [0, 1, 2, 3, 4]),
        (0, 7, [0, 2, 4, 6, 8]),
        (0, 1204, [0, 500, 1000, 1500]),
        (-3, 5, [-4, -2, 0, 2, 4, 6]),
        (-7, -2, [-8, -6, -4, -2, 0, 2]),
        (0, 3_400_000_000, [0, 10**9, 2 * 10**9, 3 * 10**9, 4 * 10**9]),
    ],
)
def test_ticks_are_round_numbers(lowest, highest, ticks):
    assert nice_ticks(lowest, highest) == ticks


@given(st.integers(-(2**63), 2**63), st.integers(-(2**63), 2**63))
def test_ticks_cover_all_numbers_and_zero(one, other):
    lowest, highest = sorted((one, other))
    ticks = nice_ticks(lowest, highest)

    assert ticks[0] <= lowest
    assert highest <= ticks[-1]
    assert 0 in ticks
    assert 2 <= len(ticks) <= 7
    assert len({b - a for a, b in pairwise(ticks)}) == 1
