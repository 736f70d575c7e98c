"""What visitors.lua counts and merge.lua merges."""

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
    def test_counts_of_days(self, call, first, last, counts):
        names = [KEYS.sketches_of(5, "a"), KEYS.sketches_of(5, "nobody")]

        of_a, of_nobody = call("count_visitors", names, KEYS.sketches, first, last, "views")
        assert dict(zip(of_a[::2], of_a[1::2], strict=True)) == counts
        assert of_nobody == []

    def test_sketch_that_is_gone_or_none_is_left_out(self, redis, call):
        redis.delete(KEYS.sketch("5:views:2026-01-01:k1:a"))
        redis.set(KEYS.sketch("5:views:2026-01-02:k2:a"), "no sketch")
        args = (KEYS.sketches, "2026-01-01", "2026-01-02", "views")

        assert call("count_visitors", [KEYS.sketches_of(5, "a")], *args) == [[]]

    def test_set_that_is_none_is_empty(self, redis, call):
        redis.set(KEYS.sketches_of(5, "b"), "no set")
        args = (KEYS.sketches, "2026-01-01", "2026-01-01", "views")

        assert call("count_visitors", [KEYS.sketches_of(5, name) for name in "ba"], *args) == [
            [],
            [b"5:views:2026-01-01:k1:a", 3],
        ]


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
