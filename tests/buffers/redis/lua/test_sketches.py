"""What is counted, kept and merged of sketches."""

from __future__ import annotations

import pytest

from tests.buffers.redis.lua.partition import KEYS, content


class TestVisitors:
    @pytest.fixture(autouse=True)
    def sketches(self, redis):
        for field, count in {
            "5:views:2026-01-01:k1:a": 3,
            "5:views:2026-01-02:k2:a": 4,
            "5:views:2026-01-03:k3:a": 5,
            "5:downloads:2026-01-02:k2:a": 6,
        }.items():
            redis.pfadd(KEYS.sketch(field), *range(count))
            redis.sadd(KEYS.sketches_of(5, "a"), KEYS.sketch(field))

    @pytest.fixture
    def count_days(self, call):
        """Count the visitors of objects by day, from one day to another."""

        def run(*days, of="a"):
            names = [name for n in of for name in (KEYS.sketches_of(5, n), "kept")]
            ranges = [":".join(["views", *days]), ""] * len(of)
            _, *found = call("read_visitors", [KEYS.epoch, *names], 7, *ranges)
            assert {is_known for is_known, *_ in found} == {0}
            return [dict(zip(flat[1::2], flat[2::2], strict=True)) for flat in found]

        return run

    @pytest.mark.parametrize(
        ("first", "last", "counts"),
        [
            ("2026-01-02", "2026-01-02", {b"5:views:2026-01-02:k2:a": 4}),
            (
                "2026-01-02",
                "2026-02-01",
                {b"5:views:2026-01-02:k2:a": 4, b"5:views:2026-01-03:k3:a": 5},
            ),
            ("2025-01-01", "2025-12-31", {}),
        ],
    )
    def test_counts_of_days(self, count_days, first, last, counts):
        assert count_days(first, last, of="an") == [counts, {}]

    def test_sketch_that_is_gone_or_none_is_left_out(self, redis, count_days):
        redis.delete(KEYS.sketch("5:views:2026-01-01:k1:a"))
        redis.set(KEYS.sketch("5:views:2026-01-02:k2:a"), "no sketch")

        assert count_days("2026-01-01", "2026-01-02") == [{}]

    def test_set_that_is_none_is_empty(self, redis, count_days):
        redis.set(KEYS.sketches_of(5, "b"), "no set")

        assert count_days("2026-01-01", "2026-01-01", of="ba") == [
            {},
            {b"5:views:2026-01-01:k1:a": 3},
        ]


class TestKept:
    """What keep_visitors.lua keeps, and read_visitors.lua counts."""

    RANGE = ("views:2026-01-01:2026-01-04", "views:2026-01-03:2026-01-04")
    SKETCH = KEYS.sketch("5:views:2026-01-03:k3:a")
    OF_OBJECT = (KEYS.sketches_of(5, "a"), KEYS.kept_visitors_of(5, "a"))

    @pytest.fixture(autouse=True)
    def sketch(self, redis):
        redis.set(KEYS.epoch, 7)
        redis.pfadd(self.SKETCH, *range(5))

    @pytest.fixture
    def keep(self, call):
        """Keep 3 visitors and 2 spans of closed days, and the sketch."""

        def run(of_table="", epoch=7):
            keys = [KEYS.epoch, *self.OF_OBJECT, KEYS.scratch[1], self.SKETCH]
            return call("keep_visitors", keys, epoch, 60, 90, *self.RANGE, "3 2", of_table)

        return run

    @pytest.fixture
    def read(self, call):
        """Count what is kept; returns [0] if it is unknown."""

        def run():
            epoch, found = call("read_visitors", [KEYS.epoch, *self.OF_OBJECT], 9, *self.RANGE)
            assert epoch == b"7"
            return found[:3] if found[0] else [0]

        return run

    def test_kept_range_is_known(self, redis, keep, read):
        assert read() == [0]
        assert keep() == read() == [1, 8, 3]
        redis.pfadd(self.SKETCH, 99)
        assert read() == [1, 9, 3]
        assert 0 < redis.ttl(self.OF_OBJECT[1]) <= 60

    def test_nothing_is_kept_after_another_epoch(self, keep, read):
        assert keep(epoch=6) is None
        assert read() == [0]

    def test_nothing_is_kept_beside_a_sketch_that_the_caller_does_not_know(self, redis, keep, read):
        other = KEYS.sketch("5:views:2026-01-04:k4:a")
        redis.pfadd(other, 1)
        redis.sadd(self.OF_OBJECT[0], other)

        assert keep() is None
        assert read() == [0]

    @pytest.mark.parametrize("value", [None, "no sketch"])
    def test_range_is_unknown_without_its_sketch(self, redis, keep, read, value):
        keep()
        redis.delete(self.SKETCH)
        if value:
            redis.set(self.SKETCH, value)
        assert read() == [0]

    def test_sketch_of_the_table_is_merged(self, redis, keep):
        redis.pfadd("elsewhere", 3, 4, 5, 6)
        of_table = redis.get("elsewhere")
        redis.delete("elsewhere", self.SKETCH)

        assert keep(of_table) == [1, 7, 3]
        assert redis.smembers(self.OF_OBJECT[0]) == {self.SKETCH.encode()}
        assert all(0 < redis.ttl(name) <= 90 for name in (self.SKETCH, self.OF_OBJECT[0]))
        assert not redis.exists(*KEYS.scratch)

    @pytest.mark.parametrize("name", OF_OBJECT)
    def test_foreign_value_gives_way(self, redis, keep, read, name):
        redis.set(name, "no hash and no set")
        assert read() == [0]
        assert keep() == read() == [1, 8, 3]


class TestMerge:
    @pytest.fixture
    def of_table(self, redis):
        """A sketch of the visitors 2, 3 and 4, as a table keeps it."""
        redis.pfadd("elsewhere", 2, 3, 4)
        sketch = redis.get("elsewhere")
        redis.delete("elsewhere")
        return sketch

    def test_for_the_answer_only(self, redis, call, of_table):
        redis.pfadd(KEYS.sketch("a"), 1, 2)
        redis.pfadd(KEYS.sketch("b"), 5)
        before = content(redis)
        names = [*KEYS.scratch, KEYS.sketch("a"), KEYS.sketch("b")]

        assert call("merge_sketches", names, 0, of_table)[0] == 5
        assert content(redis) == before

    def test_for_good(self, redis, call, of_table):
        redis.pfadd(KEYS.sketch("a"), 1, 2)

        count, sketch = call("merge_sketches", [*KEYS.scratch, KEYS.sketch("a")], 60, of_table)
        assert (count, sketch) == (4, redis.get(KEYS.sketch("a")))
        assert 0 < redis.ttl(KEYS.sketch("a")) <= 60
        assert list(content(redis)) == ["visitors:a"]

    def test_what_is_no_sketch_adds_nothing(self, redis, call, of_table):
        redis.set(KEYS.sketch("a"), "no sketch")

        names = [*KEYS.scratch, KEYS.sketch("a")]
        assert call("merge_sketches", names, 0, b"nor is this", of_table)[0] == 3
