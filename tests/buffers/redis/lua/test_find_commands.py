"""What find_commands.lua says that Redis knows of the commands of a run."""

from __future__ import annotations

from itertools import product

import pytest

from tests.buffers.redis.lua.partition import A_TODAY, GENERATION, KEYS, batch, content

OF_RUN = (KEYS.sequence, KEYS.pending, KEYS.batch)
HITS = {
    "none": None,
    "ours": batch(7, A_TODAY),
    "of another generation": batch(7, A_TODAY, generation="another"),
    "without a name": {A_TODAY: 1},
    "with a foreign name": {A_TODAY: 1, "id": "rubbish"},
}
SEQUENCES = {
    "none": None,
    "ours": {"last_batch": f"{GENERATION}:6"},
    "without a name": {"opened": GENERATION, "day": 1},
    "with a foreign name": {"last_batch": "rubbish"},
}
KNOWN = {"ours": (GENERATION, 6)}


@pytest.fixture
def find(call):
    return lambda recorder="recorder": call("find_commands", OF_RUN, recorder)


@pytest.mark.parametrize(("sequence", "pending", "batch"), [*product(SEQUENCES, HITS, HITS)])
def test_generation(redis, find, sequence, pending, batch):
    """It is known if all hits that are left are of it. A hash without a name is not ours."""
    for key, fields in zip(OF_RUN, (SEQUENCES[sequence], HITS[pending], HITS[batch]), strict=True):
        if fields:
            redis.hset(key, mapping=fields)
    before = content(redis)

    foreign = {"without a name", "with a foreign name"}
    known = {pending, batch} <= ({"none", "ours"} if sequence == "ours" else {"none", *foreign})
    generation, number = KNOWN.get(sequence, ("-", 0))
    state = generation.encode() if known else b"lost"
    assert find() == [state, number, b"0", int(batch != "none"), 0]
    assert content(redis) == before


@pytest.mark.parametrize("place", range(3))
def test_key_of_another_type(redis, find, place):
    """Nothing is known yet: the next claim moves it away."""
    for key, fields in zip(OF_RUN, (SEQUENCES["ours"], HITS["ours"], HITS["ours"]), strict=True):
        redis.hset(key, mapping=fields)
    redis.delete(OF_RUN[place])
    redis.rpush(OF_RUN[place], "somebody else's")

    assert find() == [b"", 0 if place == 0 else 6, b"0", 1, 0]


def test_last_commands(redis, find):
    numbers = {"a": "12 20000", "b": "3", "c": "rubbish", "d": "-5 1"}
    redis.hset(KEYS.sequence, mapping={**SEQUENCES["ours"], **numbers})

    assert [find(recorder)[4] for recorder in "abcde"] == [12, 3, 0, 0, 0]


@pytest.mark.parametrize(("claim", "found"), [("4711", b"4711"), ("rubbish", b"0"), ("-1", b"0")])
def test_last_claim(redis, find, claim, found):
    redis.hset(KEYS.sequence, mapping={**SEQUENCES["ours"], "last_claim": claim})

    assert find()[1:3] == [6, found]
