"""What read_totals.lua and held_totals.lua say is held, and what keep_totals.lua keeps."""

from __future__ import annotations

import datetime

import pytest

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
A_AT = ("5:views", "a")
B_AT = ("5:views", "b")
TOTALS = (KEYS.total(A), KEYS.total(B))
OF_BATCH, OF_PENDING = (f"{GENERATION}:{number}".encode() for number in (7, 8))


@pytest.fixture(autouse=True)
def held(redis):
    redis.set(KEYS.epoch, 5)
    redis.set(KEYS.runs, RUN_ID)
    redis.hset(KEYS.pending, mapping=batch(8, days=MODEL_TODAY, **{A_TODAY: 2}))
    hits = {A_TODAY: 20, A_YESTERDAY: 10, B_TODAY: 40}
    redis.hset(KEYS.batch, mapping=batch(7, days=f"{YESTERDAY} {MODEL_TODAY}", **hits))


@pytest.fixture
def read(call):
    """Read the totals of two counters."""
    keys = [KEYS.batch, KEYS.pending, KEYS.epoch, KEYS.runs, *TOTALS]
    return lambda first=A_AT, second=B_AT: call("read_totals", keys, 9, *first, *second)


@pytest.fixture
def keep(redis, call):
    """Keep the totals of two counters, given without pending hits; returns those in Redis."""

    def run(epoch, of_a, of_b, first=A_AT, second=B_AT):
        keys = [KEYS.epoch, KEYS.pending, *TOTALS]
        assert call("keep_totals", keys, epoch, 60, *first, of_a, *second, of_b) is None
        return [redis.get(key) for key in TOTALS]

    return run


class TestRead:
    def test_held_hits_of_unknown_totals(self, redis, read):
        place = [b"5", RUN_ID.encode()]

        assert read() == [
            *place,
            [None, None],
            [OF_BATCH, b"30", b"40"],
            [OF_PENDING, b"2", b"0"],
        ]
        redis.set(KEYS.total(A), 9)
        assert read() == [*place, [b"9", None], [OF_BATCH, b"40"], [OF_PENDING, b"0"]]
        redis.set(KEYS.total(B), -7)
        assert read() == [*place, [b"9", b"-7"], [OF_BATCH], [OF_PENDING]]

    def test_earlier_run(self, call):
        of = (*B_AT, *A_AT)

        assert call("held_totals", [KEYS.batch, KEYS.pending], *of) == [
            [OF_BATCH, b"40", b"30"],
            [OF_PENDING, b"0", b"2"],
        ]

    def test_counters_models_and_objects_are_apart(self, redis, read):
        """The beginning of one may be that of another."""
        others = {"d:5:views2:2026-01-01:a": 3, "d:55:views:2026-01-01:a": 4}
        redis.hset(KEYS.pending, mapping={**others, f"{A_TODAY}:b": 5, f"{A_TODAY}a": 6})
        days = f"{MODEL_TODAY} 5:views2:2026-01-01 55:views:2026-01-01"
        redis.hset(KEYS.pending, "days", days)

        assert read()[4][1:] == [b"2", b"0"]
        assert read(("5:views2", "a"), ("55:views", "a"))[4][1:] == [b"3", b"4"]
        assert read(("5:views", "a:b"), ("5:views", "aa"))[4][1:] == [b"5", b"6"]

    @pytest.mark.parametrize("put", ["set", "rpush"])
    def test_what_is_not_ours_is_nothing(self, redis, read, put):
        for key in (KEYS.batch, KEYS.total(A)):
            redis.delete(key)
            getattr(redis, put)(key, "rubbish")
        redis.hset(KEYS.pending, mapping={B_TODAY: "rubbish", "id": "x:007"})

        assert read()[2:] == [[None, None], [None, b"0", b"0"], [None, b"2", b"0"]]

    @pytest.mark.parametrize("value", ["inf", "nan", "1e999", "0x10", "9" * 5000])
    def test_what_only_lua_takes_for_a_number_is_nothing(self, redis, read, value):
        redis.hset(KEYS.pending, A_TODAY, value)
        redis.set(KEYS.total(A), value)

        assert read()[2:] == [[None, None], [OF_BATCH, b"30", b"40"], [OF_PENDING, b"0", b"0"]]

    def test_many_days(self, redis, read):
        first = datetime.date(2000, 1, 1)
        days = [f"5:views:{first + datetime.timedelta(days=n)}" for n in range(3000)]
        redis.hset(KEYS.pending, mapping={f"d:{day}:a": 1 for day in days})
        redis.hset(KEYS.pending, "days", " ".join(days))

        assert read()[4][1:] == [b"3000", b"0"]

    def test_foreign_days_add_nothing(self, redis, read):
        redis.hset(KEYS.pending, "days", f"rubbish {MODEL_TODAY} : 5:views")
        redis.hset(KEYS.batch, "days", "")

        assert read()[3:] == [[OF_BATCH, b"0", b"0"], [OF_PENDING, b"2", b"0"]]


class TestKeep:
    def test_hits_that_are_pending_now_are_added(self, redis, keep):
        assert keep(5, 130, 240) == [b"132", b"240"]
        assert 50 < redis.ttl(KEYS.total(A)) <= 60

    def test_nothing_of_another_epoch(self, keep):
        assert keep(4, 130, 240) == [None, None]

    @pytest.mark.parametrize("rubbish", [None, "rubbish"])
    def test_nothing_without_an_epoch(self, redis, keep, rubbish):
        redis.delete(KEYS.epoch)
        if rubbish:
            redis.rpush(KEYS.epoch, rubbish)

        assert keep(5, 130, 240) == keep(0, 130, 240) == keep(1, 130, 240) == [None, None]

    def test_total_that_came_meanwhile_stays(self, redis, keep):
        redis.set(KEYS.total(A), 7)

        assert keep(5, 100, 200) == [b"7", b"200"]

    def test_foreign_total_is_replaced(self, redis, keep):
        redis.rpush(KEYS.total(A), "rubbish")
        redis.set(KEYS.total(B), "rubbish")

        assert keep(5, 100, 200) == [b"102", b"200"]

    def test_totals_of_many_digits_stay_whole(self, keep):
        assert keep(5, 2**52, 0)[0] == str(2**52 + 2).encode()
