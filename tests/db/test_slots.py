"""Which slots writers choose."""

from __future__ import annotations

from itertools import islice

import pytest

from django_hitcount.db.slots import choose_slots


@pytest.fixture(autouse=True)
def three_slots(settings) -> None:
    settings.HITCOUNT = {**settings.HITCOUNT, "SLOTS": 3}


def test_each_is_chosen_but_that_of_the_compaction():
    assert {next(choose_slots()) for _ in range(300)} == {1, 2, 3}


def test_one_is_tried_again_when_all_were_tried():
    slots = [*islice(choose_slots(), 6)]

    assert sorted(slots[:3]) == sorted(slots[3:]) == [1, 2, 3]
