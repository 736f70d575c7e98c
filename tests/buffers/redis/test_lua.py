"""Truth tables of the Lua scripts, each called by itself."""

from __future__ import annotations

import datetime
import uuid

import pytest

from django_hitcount.buffers.redis.keys import RunKeys
from django_hitcount.buffers.redis.record_call import VISITORS_SECONDS, record_call
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.transport import RedisTransport
from django_hitcount.counters.hits import AddressHash, AddressInterval, NewHits, VisitorHashes
from django_hitcount.counters.keys import CounterKey
from django_hitcount.outages.command_ids import REMEMBERED_SECONDS, CommandId

RUN_ID = "0123456789ab"
KEYS = RunKeys(3, RUN_ID)
GENERATION = f"{RUN_ID}:{uuid.UUID(int=7).hex}:1"
RECORDER = uuid.UUID(int=7)
TODAY = datetime.date(2026, 1, 1)
ANN = VisitorHashes("k1", b"a" * 16, (b"a" * 16,))
BOB = VisitorHashes("k1", b"b" * 16, (b"b" * 16,))
HOME = AddressHash(AddressInterval("2026-01-01", TODAY, TODAY), b"\x0b" + b"h" * 15)
AT_HOME = KEYS.addresses("2026-01-01", 0x0B)
VISITORS = "5:views:2026-01-01:k1:a"
A, B = "5:views:a", "5:views:b"
A_TODAY = "5:views:2026-01-01:a"


def visitor_at_home(number):
    mark = bytes([number]) * 16
    return VisitorHashes("k1", mark, (mark,), HOME)


@pytest.fixture
def call(redis):
    exchange = RedisTransport("hitcount", timeout_seconds=1)

    def run(name, keys, *args):
        (reply,) = exchange.run_all([ScriptCall(name, keys, args)])
        return reply

    return run


def content(redis):
    """All of the partition, the prefix left out."""
    found = {}
    for key in redis.keys("*"):
        name = key.decode().removeprefix("hitcount:{3}:").removeprefix(f"{RUN_ID}:")
        is_hash = redis.type(key) == b"hash"
        found[name] = redis.hgetall(key) if is_hash else redis.get(key)
    return found


class TestRecord:
    @pytest.fixture
    def record(self, redis):
        exchange = RedisTransport("hitcount", timeout_seconds=1)

        def run(sequence, amount=1, threshold=0, **of_hit):
            hit = NewHits(CounterKey(5, "a", "views"), TODAY, amount, **of_hit)
            number = CommandId(RECORDER, sequence)
            (reply,) = exchange.run_all([record_call(KEYS, [hit], number, threshold)])
            return reply

        return run

    @pytest.fixture
    def rule(self, settings):
        def apply(repeat="always", **options):
            options = {"repeat": repeat, **options}
            settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}

        return apply

    def test_without_a_total(self, redis, record):
        assert record(1, 4) == [0, [], None, None, None, RUN_ID.encode()]
        assert content(redis) == {
            "pending": {A.encode(): b"4"},
            "pending_daily": {A_TODAY.encode(): b"4"},
            f"recorder:{RECORDER.hex}": b"1",
            "sequence": f"{GENERATION}:0".encode(),
            "runs": RUN_ID.encode(),
        }

    def test_with_a_total(self, redis, record):
        redis.set(KEYS.total(A), 10)

        assert record(1, 4) == [0, [], 14]
        assert redis.get(KEYS.total(A)) == b"14"

    def test_while_a_batch_is_set_aside(self, redis, record):
        redis.mset({KEYS.epoch: 7, KEYS.batch_id: "id"})

        assert record(1) == [0, [], None, b"7", b"id", RUN_ID.encode()]

    @pytest.mark.parametrize(
        ("sequences", "hits"),
        [([1, 2, 3], 3), ([1, 1], 1), ([2, 1], 1), ([5, 5, 6, 5], 2)],
    )
    def test_a_number_runs_once_and_none_after_a_greater_one(self, redis, record, sequences, hits):
        redis.set(KEYS.total(A), 0)
        for sequence in sequences:
            total = record(sequence)[-1]

        assert redis.hget(KEYS.pending, A) == str(hits).encode()
        assert redis.hget(KEYS.pending_daily, A_TODAY) == str(hits).encode()
        assert int(total) == hits

    @pytest.mark.parametrize("name", ["pending", "pending_daily", f"total:{A}"])
    def test_key_of_another_type_is_not_in_the_way(self, redis, record, name):
        redis.rpush(f"hitcount:{{3}}:{RUN_ID}:{name}", "somebody else's")

        assert record(1, 4)[0] == 0
        assert redis.hget(KEYS.pending, A) == redis.hget(KEYS.pending_daily, A_TODAY) == b"4"

    def test_recorder_is_forgotten_in_time(self, redis, record):
        record(1)

        assert 0 < redis.ttl(KEYS.recorder(RECORDER)) <= REMEMBERED_SECONDS

    @pytest.mark.parametrize(
        ("held", "threshold", "crossed"),
        [(0, 0, 0), (0, 1, 0), (1, 1, 1), (2, 1, 0), (4, 5, 0), (5, 5, 1)],
    )
    def test_threshold_is_crossed_once(self, redis, record, held, threshold, crossed):
        for n in range(held):
            redis.hset(KEYS.pending, f"5:views:{n}", 1)

        assert record(1, threshold=threshold)[0] == crossed
        assert record(2, threshold=threshold)[0] == 0

    def test_refused_hit_is_counted_apart(self, redis, record):
        redis.set(KEYS.total(A), 10)

        assert record(1, refusal="bot") == [0, [], b"10"]
        assert record(1, refusal="bot") == [0, [], b"10"]
        assert content(redis)["pending_refused"] == {b"2026-01-01:views:bot": b"1"}
        assert not redis.exists(KEYS.pending, KEYS.pending_daily)

    @pytest.mark.parametrize("repeat", [60, "daily"])
    def test_visitor_counts_once(self, redis, record, rule, repeat):
        rule(repeat)
        redis.set(KEYS.total(A), 10)

        assert [record(n, visitor=ANN) for n in (1, 2)] == [[0, [], 11], [0, [1], b"11"]]
        assert record(3, visitor=BOB) == [0, [], 12]
        assert redis.hgetall(KEYS.pending) == {A.encode(): b"2"}
        assert redis.hgetall(KEYS.pending_refused) == {b"2026-01-01:views:repeat": b"1"}

    def test_interval_ends_by_the_clock_of_redis(self, redis, record, rule):
        rule(60)
        record(1, visitor=ANN)

        assert 59_000 < redis.pttl(KEYS.repeat(ANN.recent[0])) <= 66_000

    def test_visitor_is_known_by_the_key_of_before(self, redis, record, rule):
        rule(60)
        record(1, visitor=ANN)
        redis.set(KEYS.total(A), 1)

        tomorrow = VisitorHashes("k2", b"n" * 16, (b"n" * 16, ANN.of_day))
        assert record(2, visitor=tomorrow) == [0, [1], b"1"]
        assert not redis.exists(KEYS.repeat(b"n" * 16))

    def test_filter_and_sketch_end_with_their_day(self, redis, record, rule):
        rule("daily", visitors=True)
        record(1, visitor=ANN)

        names = [KEYS.seen(TODAY, "k1"), KEYS.sketch(VISITORS), KEYS.sketches_of(5, "a")]
        assert all(0 < redis.ttl(name) <= VISITORS_SECONDS + 600 for name in names)

    def test_visitors_are_sketched_though_they_do_not_count(self, redis, record, rule):
        rule("daily", visitors=True)
        for n, visitor in enumerate([ANN, BOB, ANN], start=1):
            record(n, visitor=visitor)

        assert redis.pfcount(KEYS.sketch(VISITORS)) == 2
        assert redis.smembers(KEYS.sketches_of(5, "a")) == {KEYS.sketch(VISITORS).encode()}

    @pytest.mark.parametrize(
        ("before", "noted"), [({}, b"1"), ({VISITORS: 0}, b"0"), ({VISITORS: 1}, b"1")]
    )
    def test_changed_sketches_are_noted_and_begun_ones_as_such(
        self, redis, record, rule, before, noted
    ):
        rule(visitors=True)
        if before:
            redis.pfadd(KEYS.sketch(VISITORS), "somebody")
            redis.expire(KEYS.sketch(VISITORS), 60)
            redis.sadd(KEYS.merged_sketches, VISITORS)
            redis.hset(KEYS.pending_visitors, mapping=before)
        record(1, visitor=ANN)

        assert redis.hgetall(KEYS.pending_visitors) == {VISITORS.encode(): noted}

    def test_sketch_of_an_earlier_run_is_noted_as_begun(self, redis, record, rule):
        """It may be older than what the table has."""
        rule(visitors=True)
        redis.pfadd(KEYS.sketch(VISITORS), "somebody")
        redis.expire(KEYS.sketch(VISITORS), 60)
        record(1, visitor=ANN)

        assert redis.hgetall(KEYS.pending_visitors) == {VISITORS.encode(): b"1"}
        assert 0 < redis.ttl(KEYS.merged_sketches) <= VISITORS_SECONDS + 600

    def test_sketch_that_does_not_change_is_not_noted(self, redis, record, rule):
        rule(visitors=True)
        redis.pfadd(KEYS.sketch(VISITORS), ANN.of_day)
        record(1, visitor=ANN)

        assert not redis.exists(KEYS.pending_visitors)

    @pytest.mark.parametrize("name", ["pending_refused", "pending_visitors"])
    @pytest.mark.parametrize("repeat", [60, "daily", "always"])
    def test_nothing_is_in_the_way_of_a_judged_hit(self, redis, record, rule, name, repeat):
        rule(repeat, visitors=True)
        strangers = [KEYS.sketch(VISITORS), KEYS.sketches_of(5, "a"), KEYS.seen(TODAY, "k1")]
        for key in [f"hitcount:{{3}}:{RUN_ID}:{name}", *strangers]:
            redis.lpush(key, "somebody else's")
        record(1, visitor=ANN)
        record(2, refusal="bot")

        assert redis.hgetall(KEYS.pending) == {A.encode(): b"1"}
        assert redis.pfcount(KEYS.sketch(VISITORS)) == 1
        assert redis.hgetall(KEYS.pending_visitors) == {VISITORS.encode(): b"1"}
        assert redis.hgetall(KEYS.pending_refused) == {b"2026-01-01:views:bot": b"1"}

    @pytest.mark.parametrize("repeat", [60, "daily", "always"])
    def test_address_counts_up_to_its_limit(self, redis, record, rule, repeat):
        rule(repeat, per_address=2)
        redis.set(KEYS.total(A), 10)
        found = [record(n, visitor=visitor_at_home(n)) for n in (1, 2, 3)]

        assert found == [[0, [], 11], [0, [], 12], [0, [-1], b"12"]]
        assert redis.hgetall(KEYS.pending_refused) == {b"2026-01-01:views:address_limit": b"1"}
        assert redis.hgetall(AT_HOME) == {b"h" * 8: b"2"}

    @pytest.mark.parametrize("value", [None, "x", str(2**63 - 1), "-5"])
    def test_nothing_is_in_the_way_of_an_address(self, redis, record, rule, value):
        rule("daily", per_address=2)
        if value is None:
            redis.lpush(AT_HOME, "somebody else's")
        else:
            redis.hset(AT_HOME, b"h" * 8, value)
        found = [record(n, visitor=visitor_at_home(n))[1] for n in (1, 2)]

        counted = 0 if value == str(2**63 - 1) else 2
        assert [judged == [] for judged in found] == [n < counted for n in range(2)]
        assert redis.hget(KEYS.pending, A) == (str(counted).encode() if counted else None)

    def test_repeat_uses_nothing_of_the_limit_up(self, redis, record, rule):
        rule("daily", per_address=2)
        found = [record(n, visitor=visitor_at_home(1))[1] for n in (1, 2, 3)]

        assert found == [[], [1], [1]]
        assert redis.hgetall(AT_HOME) == {b"h" * 8: b"1"}

    @pytest.mark.parametrize("repeat", [60, "daily", "always"])
    def test_number_that_has_run_uses_nothing_of_the_limit_up(self, redis, record, rule, repeat):
        rule(repeat, per_address=2)
        found = [record(n, visitor=visitor_at_home(n))[1] for n in (1, 1, 1, 2, 2, 3)]

        assert found == [[], [], [], [], [], [-1]]

    def test_nothing_is_kept_of_visitors_beyond_the_limit(self, redis, record, rule):
        rule("daily", visitors=True, per_address=1)
        record(1, visitor=visitor_at_home(1))
        before = redis.dump(KEYS.seen(TODAY, "k1")), redis.dump(KEYS.sketch(VISITORS))
        assert record(2, visitor=visitor_at_home(2))[1] == [-1]

        assert (redis.dump(KEYS.seen(TODAY, "k1")), redis.dump(KEYS.sketch(VISITORS))) == before

    def test_whoever_is_nobody_has_the_limit_of_the_address(self, redis, record, rule):
        rule("daily", visitors=True, per_address=1)
        nobody = VisitorHashes("k1", None, (), HOME)

        assert [record(n, visitor=nobody)[1] for n in (1, 2)] == [[], [-1]]
        assert not redis.exists(KEYS.seen(TODAY, "k1"), KEYS.sketch(VISITORS))

    @pytest.mark.parametrize(("repeat", "least"), [(60, 60), ("daily", VISITORS_SECONDS)])
    def test_addresses_end_with_their_interval(self, redis, record, rule, repeat, least):
        rule(repeat, per_address=5)
        record(1, visitor=visitor_at_home(1))
        redis.pexpire(AT_HOME, 10_000_000_000)
        record(2, visitor=visitor_at_home(2))
        assert redis.ttl(AT_HOME) > VISITORS_SECONDS + 600  # Others do not make it longer.

        redis.delete(AT_HOME)
        record(3, visitor=visitor_at_home(3))
        assert least - 1 < redis.ttl(AT_HOME) <= least + min(least / 10, 600)

    @pytest.mark.parametrize("repeat", [60, "daily", "always"])
    def test_no_hits_tell_of_a_visitor_only(self, redis, record, rule, repeat):
        rule(repeat, visitors=True)
        for n in (1, 2):
            record(n, 0, visitor=VisitorHashes("k1", ANN.of_day))

        assert not redis.exists(KEYS.pending, KEYS.pending_daily, KEYS.pending_refused)
        assert redis.pfcount(KEYS.sketch(VISITORS)) == 1
        assert record(3, visitor=ANN)[1] == ([1] if repeat == "daily" else [])


class TestClaim:
    EPOCH = RunKeys(3, "now").epoch
    KEYS = (
        *(KEYS.epoch, KEYS.batch_id, KEYS.sequence, *KEYS.pendings, *KEYS.batches),
        *(KEYS.runs, KEYS.malformed, KEYS.epoch),
    )

    def test_nothing_pending(self, redis, call):
        assert call("claim", self.KEYS, "new", "") == [None, 0, []]
        assert content(redis) == {}

    def test_pending_becomes_the_batch(self, redis, call):
        redis.hset(KEYS.pending, A, 1)
        redis.hset(KEYS.pending_daily, A_TODAY, 1)
        redis.set(KEYS.sequence, "g:6")

        assert call("claim", self.KEYS, "new", "") == [b"g:7", 1, []]
        assert content(redis) == {
            "batch": {A.encode(): b"1"},
            "batch_daily": {A_TODAY.encode(): b"1"},
            "batch_id": b"g:7",
            "sequence": b"g:7",
            "epoch": b"1",
        }

    @pytest.mark.parametrize("name", ["", "_daily", "_refused", "_visitors"])
    def test_any_of_the_hashes_makes_a_batch(self, redis, call, name):
        redis.hset(KEYS.pending + name, "field", 1)

        assert call("claim", self.KEYS, "new", "") == [b"new:1", 1, []]
        assert content(redis)["batch" + name] == {b"field": b"1"}
        assert not redis.exists(KEYS.pending + name)

    def test_batch_that_is_set_aside_comes_back(self, redis, call):
        redis.hset(KEYS.pending, A, 1)
        call("claim", self.KEYS, "old", "")
        redis.hset(KEYS.pending, A, 2)

        assert call("claim", self.KEYS, "new", "") == [b"old:1", 0, []]
        assert content(redis) == {
            "batch": {A.encode(): b"1"},
            "pending": {A.encode(): b"2"},
            "batch_id": b"old:1",
            "sequence": b"old:1",
            "epoch": b"1",
        }

    @pytest.mark.parametrize("batch_id", [None, "rubbish"])
    def test_batch_whose_id_is_lost_is_known_by_the_sequence(self, redis, call, batch_id):
        redis.hset(KEYS.batch, A, 1)
        redis.set(KEYS.sequence, "g:6")
        if batch_id:
            redis.set(KEYS.batch_id, batch_id)

        assert call("claim", self.KEYS, "new", "")[:2] == [b"g:6", 0]

    def test_batch_of_which_nothing_is_left_comes_back(self, redis, call):
        """A flusher may have read it before, and must find it in the ledger."""
        redis.set(KEYS.batch_id, "g:6")

        assert call("claim", self.KEYS, "new", "") == [b"g:6", 0, []]

    @pytest.mark.parametrize("name", ["pending", "pending_visitors", "batch", "batch_refused"])
    def test_key_of_another_type_is_moved_and_reported(self, redis, call, name):
        key = f"hitcount:{{3}}:{RUN_ID}:{name}"
        redis.hset(KEYS.pending_daily, A_TODAY, 1)
        for n in range(2):
            redis.rpush(key, f"somebody else's {n}")
            _, _, moved = call("claim", self.KEYS, "new", "")

            assert moved == [f"{KEYS.malformed}:{key}#{n}".encode()]
            assert redis.lrange(moved[0], 0, -1) == [f"somebody else's {n}".encode()]
        assert redis.hgetall(KEYS.batch_daily) == {A_TODAY.encode(): b"1"}

    @pytest.mark.parametrize(
        "text", ["rubbish", "x:007", "x:" + "9" * 30, "y" * 101 + ":1", b"\xff:1", "a\0b:1", ":1"]
    )
    @pytest.mark.parametrize("name", ["batch_id", "sequence"])
    def test_name_that_is_not_of_our_making_is_moved(self, redis, call, name, text):
        """It would not be the same text once it was read."""
        key = f"hitcount:{{3}}:{RUN_ID}:{name}"
        redis.hset(KEYS.pending, A, 1)
        redis.set(key, text)

        place = f"{KEYS.malformed}:{key}#0".encode()
        assert call("claim", self.KEYS, "new", "") == [b"new:1", 1, [place]]
        assert redis.get(KEYS.batch_id) == redis.get(KEYS.sequence) == b"new:1"

    @pytest.mark.parametrize("name", ["epoch", "batch_id", "sequence"])
    @pytest.mark.parametrize("put", ["set", "rpush"])
    def test_other_keys_that_are_not_ours_are_in_nobodys_way(self, redis, call, name, put):
        redis.hset(KEYS.pending, A, 1)
        getattr(redis, put)(f"hitcount:{{3}}:{RUN_ID}:{name}", "rubbish")

        assert call("claim", self.KEYS, "new", "")[:2] == [b"new:1", 1]
        assert redis.get(KEYS.epoch).isdigit()
        assert redis.get(KEYS.batch_id) == redis.get(KEYS.sequence) == b"new:1"

    def test_run_that_is_over_is_claimed_and_retired(self, redis, call):
        keys = (self.EPOCH, *self.KEYS[1:])
        redis.hset(KEYS.pending, A, 1)
        redis.mset({KEYS.sequence: "g:6", KEYS.epoch: 9, KEYS.runs: f"older {RUN_ID} now"})

        assert call("claim", keys, "new", RUN_ID) == [b"g:7", 1, []]
        redis.delete(KEYS.batch, KEYS.batch_id)
        assert call("claim", keys, "new", RUN_ID) == [None, 0, []]
        assert redis.get(KEYS.runs) == b"older now"
        assert not redis.exists(KEYS.sequence, KEYS.epoch)
        assert redis.get(self.EPOCH) == b"1"


class TestSettle:
    KEYS = (KEYS.batch_id, KEYS.epoch, KEYS.malformed, *KEYS.batches)

    @pytest.fixture(autouse=True)
    def batch(self, redis):
        redis.hset(KEYS.batch, mapping={A: 1, "bad": "x"})
        redis.hset(KEYS.batch_daily, mapping={A_TODAY: 1, "worse": "y"})
        redis.hset(KEYS.batch_refused, mapping={"2026-01-01:views:bot": 1, "odd": "z"})
        redis.hset(KEYS.batch_visitors, mapping={VISITORS: 1, "odder": "1"})
        redis.mset({KEYS.batch_id: "id", KEYS.epoch: 5})

    def test_batch_is_dropped(self, redis, call):
        assert call("settle", self.KEYS, "id") == 1
        assert content(redis) == {"epoch": b"6"}

    @pytest.mark.parametrize("other", ["older", ""])
    def test_other_batches_are_left(self, redis, call, other):
        before = content(redis)

        assert call("settle", self.KEYS, other) == 0
        assert content(redis) == before

    def test_second_time_is_harmless(self, redis, call):
        call("settle", self.KEYS, "id")

        assert call("settle", self.KEYS, "id") == 0
        assert content(redis) == {"epoch": b"6"}

    def test_malformed_fields_are_kept(self, redis, call):
        assert call("settle", self.KEYS, "id", "bad", "worse", "gone", "odd", "odder") == 1
        assert content(redis)["malformed"] == {
            b"bad#0": b"x",
            b"worse#1": b"y",
            b"odd#2": b"z",
            b"odder#3": b"1",
        }


class TestComplete:
    TOTALS = (KEYS.total(A), KEYS.total(B))
    HASHES = (KEYS.pending, KEYS.batch)

    @pytest.fixture(autouse=True)
    def held(self, redis):
        redis.set(KEYS.epoch, 5)
        redis.hset(KEYS.pending, A, 2)
        redis.hset(KEYS.batch, mapping={A: 30, B: 40})

    @pytest.mark.parametrize(
        ("epoch", "hashes", "totals"),
        [
            (5, HASHES, [b"132", b"240"]),
            (5, HASHES[:1], [b"102", b"200"]),
            (5, (), [b"100", b"200"]),
            (4, HASHES, None),
            (6, HASHES, None),
        ],
    )
    @pytest.mark.parametrize("ttl", [0, 60])
    def test_totals(self, redis, call, epoch, hashes, totals, ttl):
        keys = (KEYS.epoch, *hashes, *self.TOTALS)

        assert call("complete", keys, epoch, len(hashes), ttl, A, 100, B, 200) == totals
        kept = [redis.get(KEYS.total(field)) for field in (A, B)]
        assert kept == (totals if ttl and totals else [None, None])

    @pytest.fixture
    def complete(self, call):
        keys = (KEYS.epoch, *self.HASHES, *self.TOTALS)
        return lambda epoch, *args: call("complete", keys, epoch, 2, 60, *args)

    def test_total_that_came_meanwhile_stays(self, redis, complete):
        redis.set(KEYS.total(A), 7)

        assert complete(5, A, 100, B, 200) == [b"7", b"240"]

    def test_partition_that_was_never_claimed(self, redis, complete):
        redis.delete(KEYS.epoch)

        assert complete(0, A, 1, B, 0) == [b"33", b"40"]

    def test_totals_of_many_digits_stay_whole(self, redis, complete):
        redis.delete(KEYS.batch)

        assert complete(5, A, 2**52, B, 0)[0] == str(2**52 + 2).encode()

    @pytest.mark.parametrize("put", ["set", "rpush"])
    def test_what_is_not_ours_adds_nothing(self, redis, complete, put):
        redis.delete(KEYS.batch)
        getattr(redis, put)(KEYS.batch, "rubbish")
        getattr(redis, put)(KEYS.total(A), "rubbish")
        redis.hset(KEYS.pending, B, "rubbish")

        assert complete(5, A, 100, B, 200) == [b"102", b"200"]
        assert redis.get(KEYS.total(A)) == b"102"

    def test_epoch_of_another_type_is_that_of_a_new_partition(self, redis, complete):
        redis.delete(KEYS.epoch)
        redis.rpush(KEYS.epoch, "rubbish")

        assert complete(0, A, 100, B, 200) == [b"132", b"240"]


class TestCompleteDays:
    KEYS = (KEYS.epoch, KEYS.pending_daily, KEYS.batch_daily)

    @pytest.mark.parametrize(
        ("epoch", "hashes", "hits"), [(5, 2, b"33"), (5, 1, b"3"), (4, 2, None)]
    )
    def test_hits(self, redis, call, epoch, hashes, hits):
        redis.set(KEYS.epoch, 5)
        redis.hset(KEYS.pending_daily, mapping={"d1": 1, "d2": 2, "d3": 4})
        redis.hset(KEYS.batch_daily, mapping={"d1": 10, "d2": 20, "d4": 40})

        keys = self.KEYS[: 1 + hashes]
        assert call("complete_days", keys, epoch, "d1", "d2", "d9") == hits


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

        of_a, of_nobody = call("visitors", names, KEYS.sketches, first, last, "views")
        assert dict(zip(of_a[::2], of_a[1::2], strict=True)) == counts
        assert of_nobody == []

    def test_sketch_that_is_gone_or_none_is_left_out(self, redis, call):
        redis.delete(KEYS.sketch("5:views:2026-01-01:k1:a"))
        redis.set(KEYS.sketch("5:views:2026-01-02:k2:a"), "no sketch")
        args = (KEYS.sketches, "2026-01-01", "2026-01-02", "views")

        assert call("visitors", [KEYS.sketches_of(5, "a")], *args) == [[]]

    def test_set_that_is_none_is_empty(self, redis, call):
        redis.set(KEYS.sketches_of(5, "b"), "no set")
        args = (KEYS.sketches, "2026-01-01", "2026-01-01", "views")

        assert call("visitors", [KEYS.sketches_of(5, name) for name in "ba"], *args) == [
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

        assert call("merge", names, 0, of_table)[0] == 5
        assert content(redis) == before

    def test_for_good(self, redis, call, of_table):
        redis.pfadd(KEYS.sketch("a"), 1, 2)

        count, sketch = call("merge", [*KEYS.scratch, KEYS.sketch("a")], 60, of_table)
        assert (count, sketch) == (4, redis.get(KEYS.sketch("a")))
        assert 0 < redis.ttl(KEYS.sketch("a")) <= 60
        assert list(content(redis)) == ["visitors:a"]

    def test_what_is_no_sketch_adds_nothing(self, redis, call, of_table):
        redis.set(KEYS.sketch("a"), "no sketch")

        names = [*KEYS.scratch, KEYS.sketch("a")]
        assert call("merge", names, 0, b"nor is this", of_table)[0] == 3
