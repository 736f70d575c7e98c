"""Which hits read_hits.lua finds, and the names that tell whether they are in the tables."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.buffers.redis.keys import RunKeys
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    B_TODAY,
    GENERATION,
    KEYS,
    MODEL_TODAY,
    RUN_ID,
    A,
    B,
    batch,
)

YESTERDAY = "5:views:2025-12-31"
A_YESTERDAY = f"d:{YESTERDAY}:a"
PLACE = (KEYS.batch, KEYS.pending, KEYS.runs)
TOTALS = (KEYS.total(A), KEYS.total(B))
OF_BATCH, OF_PENDING = (f"{GENERATION}:{number}".encode() for number in (7, 8))
ALL_DAYS = ("", "")
EARLIER = [RunKeys(3, run) for run in ("one", "two", "three")]
OF_A, OF_B = ("5:views", ":a"), ("5:views", ":b")


def parse(held):
    """The name of a batch; then hits by place and day."""
    name, *found = held
    places = zip(found[::3], map(bytes.decode, found[1::3]), strict=True)
    return name, dict(zip(places, map(int, found[2::3]), strict=True))


@pytest.fixture(autouse=True)
def held(redis):
    """Hits of two models, two counters and some days, pending and claimed."""
    redis.set(KEYS.epoch, 5)
    redis.set(KEYS.runs, RUN_ID)
    days = f"{MODEL_TODAY} 6:views:2026-01-01 5:likes:2026-01-01"
    sums = {f"m:{MODEL_TODAY}": 2, "m:6:views:2026-01-01": 70, "m:5:likes:2026-01-01": 11}
    redis.hset(KEYS.pending, mapping=batch(8, days=days, since=1, **{A_TODAY: 2}, **sums))
    hits = {A_TODAY: 20, A_YESTERDAY: -10, B_TODAY: 40}
    sums = {f"m:{MODEL_TODAY}": 60, f"m:{YESTERDAY}": -10}
    redis.hset(KEYS.batch, mapping=batch(7, days=f"{YESTERDAY} {MODEL_TODAY}", **hits, **sums))


@pytest.fixture
def read(call):
    """Read what is held of counters; returns the hits of the batch, and the pending ones."""

    def run(*counters, days=ALL_DAYS):
        epoch, totals, held = call("read_hits", PLACE, 9, *days, *sum(counters, ()))
        assert (epoch, totals) == (None, [])
        return [parse(hits)[1] for hits in reversed(held)]

    return run


@pytest.fixture
def read_totals(call):
    """Read the totals of two counters, and what is held of those that have none."""

    def run():
        reply = call("read_hits", [*PLACE, KEYS.epoch, *TOTALS], 9, *ALL_DAYS, *OF_A, *OF_B)
        return [*reply[:2], *map(parse, reply[2])]

    return run


T, Y = "2026-01-01", "2025-12-31"
SITE, MODEL = ("views", ""), ("5:views", "")


@pytest.mark.parametrize(
    ("counters", "days", "in_batch", "pending"),
    [
        ([OF_A], ALL_DAYS, {(1, T): 20, (1, Y): -10}, {(1, T): 2}),
        ([OF_B, OF_A], ALL_DAYS, {(1, T): 40, (2, T): 20, (2, Y): -10}, {(2, T): 2}),
        ([OF_A], (T, T), {(1, T): 20}, {(1, T): 2}),
        ([OF_A], (Y, Y), {(1, Y): -10}, {}),
        ([OF_A, OF_B], ("2026-01-02", "2026-12-31"), {}, {}),
        ([("5:views", ":c")], ALL_DAYS, {}, {}),
        ([MODEL], (Y, T), {(1, T): 60, (1, Y): -10}, {(1, T): 2}),
        ([("6:views", "")], (Y, T), {}, {(1, T): 70}),
        ([("5:likes", "")], (Y, T), {}, {(1, T): 11}),
        ([("7:views", "")], (Y, T), {}, {}),
    ],
)
def test_hits(read, counters, days, in_batch, pending):
    assert read(*counters, days=days) == [in_batch, pending]


def test_hits_of_all_models(call):
    pending, _ = call("read_hits", PLACE, 9, *ALL_DAYS, *SITE)[2]

    assert pending == [OF_PENDING, 1, T.encode(), b"2", 1, T.encode(), b"70"]


def test_held_hits_of_unknown_totals(redis, read_totals):
    assert read_totals() == [
        b"5",
        [None, None],
        (OF_PENDING, {(1, T): 2}),
        (OF_BATCH, {(1, T): 20, (1, Y): -10, (2, T): 40}),
    ]
    redis.set(KEYS.total(A), 9)
    assert read_totals() == [b"5", [b"9", None], (OF_PENDING, {}), (OF_BATCH, {(1, T): 40})]
    redis.set(KEYS.total(B), -7)
    assert read_totals() == [b"5", [b"9", b"-7"]]


def test_held_hits_of_earlier_runs(redis, read):
    """Those of a run that is not listed are not found."""
    for number, names in enumerate(EARLIER):
        days = {"days": MODEL_TODAY, A_TODAY: 100 + number}
        redis.hset(names.pending, mapping=batch(1, **days))
        redis.hset(names.batch, mapping=batch(2, **days))
    redis.set(KEYS.runs, f"one {RUN_ID} two")

    found = [hits[1, T] for hits in read(OF_A, days=(T, T))]
    assert found == [101, 100, 20, 101, 100, 2]


def test_nothing(redis, read_totals):
    redis.flushdb()

    assert read_totals() == [b"9", [None, None], (None, {}), (None, {})]


def test_counters_models_and_objects_are_apart(redis, read):
    """The beginning of one may be that of another."""
    others = {"d:5:views2:2026-01-01:a": 3, "d:55:views:2026-01-01:a": 4}
    redis.hset(KEYS.pending, mapping={**others, f"{A_TODAY}:b": 5, f"{A_TODAY}a": 6})
    redis.hset(KEYS.pending, "days", f"{MODEL_TODAY} 5:views2:2026-01-01 55:views:2026-01-01")

    assert read(OF_A)[1] == {(1, T): 2}
    assert read(("5:views2", ":a"), ("55:views", ":a"))[1] == {(1, T): 3, (2, T): 4}
    assert read(("5:views", ":a:b"), ("5:views", ":aa"))[1] == {(1, T): 5, (2, T): 6}


@pytest.mark.parametrize("put", ["set", "rpush"])
def test_what_is_not_ours_is_nothing(redis, read_totals, put):
    for key in (KEYS.batch, KEYS.total(A)):
        redis.delete(key)
        getattr(redis, put)(key, "rubbish")
    redis.hset(KEYS.pending, mapping={B_TODAY: "rubbish", "id": "x:007"})

    assert read_totals()[1:] == [[None, None], (None, {(1, T): 2}), (None, {})]


def test_keys_of_another_type_are_nothing(redis, read_totals):
    for key in (*PLACE, KEYS.epoch):
        redis.delete(key)
        redis.rpush(key, "somebody else's")

    assert read_totals() == [b"9", [None, None], (None, {}), (None, {})]


@pytest.mark.parametrize("value", ["inf", "nan", "1e999", "0x10", "9" * 5000])
def test_what_only_lua_takes_for_a_number_is_nothing(redis, read_totals, value):
    redis.hset(KEYS.pending, A_TODAY, value)
    redis.set(KEYS.total(A), value)

    assert read_totals()[1:3] == [[None, None], (OF_PENDING, {})]


def test_many_days(redis, read):
    first = datetime.date(2000, 1, 1)
    days = [f"5:views:{first + datetime.timedelta(days=n)}" for n in range(3000)]
    redis.hset(KEYS.pending, mapping={f"d:{day}:a": 1 for day in days})
    redis.hset(KEYS.pending, "days", " ".join(days))

    assert sum(read(OF_A)[1].values()) == 3000


def test_foreign_days_add_nothing(redis, read):
    redis.hset(KEYS.pending, "days", f"rubbish 5:views:soon {MODEL_TODAY} : 5:views")
    redis.hset(KEYS.batch, "days", "")

    assert read(OF_A) == [{}, {(1, T): 2}]


@pytest.mark.parametrize("number", [1000, 1001, 15_000])
def test_any_number_of_totals(redis, call, number):
    names = [f"5:views:{n}" for n in range(number)]
    redis.mset({KEYS.total(name): n for n, name in enumerate(names)})
    keys = [*PLACE, KEYS.epoch, *map(KEYS.total, names)]
    counters = [part for n in range(number) for part in ("5:views", f":{n}")]

    def read():
        return call("read_hits", keys, 9, *ALL_DAYS, *counters)[1]

    assert read() == [str(n).encode() for n in range(number)]
    redis.delete(KEYS.total(names[-1]))
    assert read()[-1] is None
