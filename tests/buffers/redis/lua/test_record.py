"""What record.lua does with hits."""

from __future__ import annotations

import hashlib

import pytest

from django_hitcount.buffers.redis.record_call import build_record_call
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.missed_records import CommandId
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    B_TODAY,
    COUNTS,
    GENERATION,
    KEYS,
    MODEL_TODAY,
    NOW,
    RECORDER,
    RUN_ID,
    TODAY,
    A,
    batch,
    content,
    fields_of,
    with_now,
)
from tests.redis_server import replies_to

M_TODAY = f"m:{MODEL_TODAY}"
FIRST_EPOCH = str(int(hashlib.sha1(f"{RECORDER.hex}:1".encode()).hexdigest()[:12], 16)).encode()
ONE_COUNTER = {b"counters": b"1", b"days": MODEL_TODAY.encode(), b"since": NOW}


def test_without_a_total(redis, record):
    held = [[f"{GENERATION}:1".encode(), 1, b"2026-01-01", b"4"], [None]]
    assert record(1, 4) == [0, [None], [COUNTS], [FIRST_EPOCH, held]]
    assert content(redis) == {
        "pending": {
            A_TODAY.encode(): b"4",
            M_TODAY.encode(): b"4",
            b"id": f"{GENERATION}:1".encode(),
            **ONE_COUNTER,
        },
        "sequence": {
            b"last_batch": f"{GENERATION}:0".encode(),
            RECORDER.hex.encode(): b"1 now",
        },
        "runs": RUN_ID.encode(),
        "epoch": FIRST_EPOCH,
    }


def test_with_a_total(redis, record):
    redis.set(KEYS.total(A), 10)

    assert record(1, 4) == [0, [14], [COUNTS], None]
    assert redis.get(KEYS.total(A)) == b"14"


@pytest.mark.parametrize("amount", [1, -3])
def test_total_that_is_not_known_does_not_begin_with_the_hit(redis, record, amount):
    assert record(1, amount)[1] == [None]
    assert not redis.exists(KEYS.total(A))


@pytest.mark.parametrize("value", ["many", 2**63 - 1])
def test_total_that_cannot_be_raised_is_dropped(redis, record, value):
    redis.set(KEYS.total(A), value)

    assert record(1)[1] == [None]
    assert not redis.exists(KEYS.total(A))


@pytest.mark.parametrize("value", ["many", "9" * 5000])
def test_foreign_total_is_not_known_to_a_refused_hit(redis, record, value):
    redis.set(KEYS.total(A), value)

    assert record(1, refusal="bot")[1] == [None]


@pytest.mark.parametrize(("before", "amount"), [(0, 1), (0, -3), (4, -4)])
def test_total_keeps_its_ttl(redis, record, before, amount):
    redis.set(KEYS.total(A), before, ex=60)

    assert record(1, amount)[1] == [before + amount]
    assert 50 < redis.ttl(KEYS.total(A)) <= 60


@pytest.mark.parametrize("name", ["", "x:007"])
def test_while_a_batch_is_set_aside(redis, record, name):
    redis.set(KEYS.epoch, 7)
    redis.hset(KEYS.batch, mapping=batch(6, days=MODEL_TODAY, **{A_TODAY: 5}))
    if name:
        redis.hset(KEYS.batch, "id", name)

    known = None if name else f"{GENERATION}:6".encode()
    today = b"2026-01-01"
    held = [[f"{GENERATION}:1".encode(), 1, today, b"1"], [known, 1, today, b"5"]]
    assert record(1) == [0, [None], [COUNTS], [b"7", held]]


@pytest.mark.parametrize(
    ("sequences", "hits"),
    [([1, 2, 3], 3), ([1, 1], 1), ([2, 1], 1), ([5, 5, 6, 5], 2)],
)
def test_a_number_runs_once_and_none_after_a_greater_one(redis, record, sequences, hits):
    redis.set(KEYS.total(A), 0, ex=60)
    for sequence in sequences:
        _, (total,), _, _ = record(sequence)

    expected = str(hits).encode()
    assert fields_of(redis, "pending") == {A_TODAY: expected, M_TODAY: expected}
    assert int(total) == hits


@pytest.mark.parametrize("name", ["runs", "total", "epoch", "malformed"])
def test_key_of_another_type_is_not_in_the_way(redis, record, name):
    redis.rpush(KEYS.total(A) if name == "total" else getattr(KEYS, name), "somebody else's")

    first = record(1, 4)
    assert first[:3] == [0, [None], [COUNTS]]
    assert fields_of(redis, "pending") == {A_TODAY: b"4", M_TODAY: b"4"}
    assert record(1, 4)[:3] == first[:3]
    assert fields_of(redis, "pending") == {A_TODAY: b"4", M_TODAY: b"4"}
    assert with_now(redis.hgetall(KEYS.pending)).items() >= ONE_COUNTER.items()


@pytest.mark.parametrize("name", ["pending", "sequence"])
@pytest.mark.parametrize("put", ["set", "rpush"])
@pytest.mark.parametrize("expected", ["", "-"])
def test_foreign_value_in_place_of_hits_rejects_them(redis, record, name, put, expected):
    redis.set(KEYS.total(A), 10, ex=60)
    key = getattr(KEYS, name)
    getattr(redis, put)(key, "somebody else's")
    theirs = redis.dump(key)
    with pytest.raises(BufferUnavailable, match="WRONGTYPE"):
        record(1, expected=expected)

    assert redis.dump(key) == theirs
    assert not fields_of(redis, "batch")
    assert redis.get(KEYS.total(A)) == b"10"
    # Nor is the command noted: if its answer is lost, it did not run.
    other = KEYS.sequence if name == "pending" else KEYS.pending
    assert not redis.exists(other)


@pytest.mark.parametrize("field", [A_TODAY, M_TODAY, "counters"])
@pytest.mark.parametrize("value", ["many", "1.5", str(2**63 - 1), ""])
def test_malformed_value_gets_another_name(redis, record, field, value):
    """One that no field of ours has: so the flush sets it aside."""
    redis.hset(KEYS.pending, field, value)

    assert record(1, 4)[0] == 0
    found = redis.hgetall(KEYS.pending)
    assert found[field.encode()] == (b"1" if field == "counters" else b"4")
    (place,) = [name.decode() for name in found if name.startswith(b"?")]
    assert place.lstrip("?0123456789") == field
    assert found[place.encode()] == value.encode()


def test_recorder_is_known_by_its_last_number_and_the_moment_of_that_command(redis, record):
    record(1)
    redis.hset(KEYS.sequence, RECORDER.hex, "1 12345")
    record(7)
    record(3)

    assert with_now(redis.hgetall(KEYS.sequence))[RECORDER.hex.encode()] == b"7 now"


def test_common_hit_is_seven_commands(redis, record_on):
    """They are listed, so that none is added unseen: most hits are such hits."""
    redis.set(KEYS.total(A), 0, ex=60)
    record_on("common", 1)
    redis.config_resetstat()
    record_on("common", 2)

    statistics = redis.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): of["calls"] for name, of in statistics.items()}
    expected = {"exists": 1, "hget": 1, "hincrby": 2, "hset": 1, "incrby": 1, "time": 1}
    own = {"evalsha", "config|resetstat"}
    assert {name: calls[name] for name in calls.keys() - own} == expected


DISTURBANCES = {
    "none": lambda redis: None,
    "total lost": lambda redis: redis.delete(KEYS.total(A)),
    "total foreign": lambda redis: redis.set(KEYS.total(A), "many"),
    "total of nobody": lambda redis: redis.set(KEYS.total(A), 0),
    "total of another type": lambda redis: (
        redis.delete(KEYS.total(A)),
        redis.rpush(KEYS.total(A), "x"),
    ),
    "total of 0": lambda redis: redis.set(KEYS.total(A), 0, ex=60),
    "total of infinity": lambda redis: redis.set(KEYS.total(A), "inf", ex=60),
    "batch without a name": lambda redis: redis.hdel(KEYS.sequence, "last_batch"),
    "field of infinity": lambda redis: redis.hset(KEYS.pending, A_TODAY, "inf"),
    "runs lost": lambda redis: redis.delete(KEYS.runs),
    "runs foreign": lambda redis: (redis.delete(KEYS.runs), redis.rpush(KEYS.runs, "x")),
    "sequence lost": lambda redis: redis.delete(KEYS.sequence),
    "recorder foreign": lambda redis: redis.hset(KEYS.sequence, RECORDER.hex, "x"),
    "recorder ahead": lambda redis: redis.hset(KEYS.sequence, RECORDER.hex, "9 1"),
    "pending lost": lambda redis: redis.delete(KEYS.pending),
    "field lost": lambda redis: redis.hdel(KEYS.pending, A_TODAY),
    "field foreign": lambda redis: redis.hset(KEYS.pending, A_TODAY, "x"),
    "field taken back": lambda redis: redis.hset(KEYS.pending, A_TODAY, -4),
    "model lost": lambda redis: redis.hdel(KEYS.pending, M_TODAY),
    "model foreign": lambda redis: redis.hset(KEYS.pending, M_TODAY, "x"),
    "model taken back": lambda redis: redis.hset(KEYS.pending, M_TODAY, -4),
    "name lost": lambda redis: redis.hdel(KEYS.pending, "id"),
    "batch set aside": lambda redis: redis.rename(KEYS.pending, KEYS.batch),
}


@pytest.mark.parametrize("disturb", DISTURBANCES.values(), ids=DISTURBANCES)
def test_both_paths_do_the_same(redis, record_on, disturb):
    found = []
    for path in ("common", "careful"):
        redis.flushall()
        redis.set(KEYS.total(A), 10, ex=60)
        record_on(path, 1, 3)
        disturb(redis)
        replies = [record_on(path, 2, 4), record_on(path, 2, 4), record_on(path, 3, 1)]
        state = {
            key: (redis.type(key), with_now(redis.hgetall(key)))
            if redis.type(key) == b"hash"
            else redis.dump(key)
            for key in redis.keys("*")
        }
        found.append((replies, state, redis.ttl(KEYS.total(A)) > 0))

    assert found[0] == found[1]


class TestNames:
    """Pending hits have the name of the batch that they become, from the first one on."""

    @pytest.mark.parametrize(
        "kind", [{}, {"refusal": "bot"}, {"amount": -3}], ids=["hit", "refused", "negative"]
    )
    def test_whatever_comes_first(self, redis, record, kind):
        record(1, **kind)

        assert redis.hget(KEYS.pending, "id") == f"{GENERATION}:1".encode()
        assert redis.get(KEYS.runs) == RUN_ID.encode()

    def test_next_number_after_the_last_batch(self, redis, record):
        redis.hset(KEYS.sequence, mapping={"last_batch": "another:6", "day": 5})
        record(1)

        assert redis.hget(KEYS.pending, "id") == b"another:7"
        assert redis.hget(KEYS.sequence, "last_batch") == b"another:6"

    def test_name_stays(self, redis, record):
        """Also if the sequence is lost. Then the hits after the next claim begin a generation."""
        redis.hset(KEYS.pending, mapping=batch(7, B_TODAY, generation="another"))
        record(1)

        assert redis.hget(KEYS.pending, "id") == b"another:7"
        assert redis.hkeys(KEYS.sequence) == [RECORDER.hex.encode()]

    def test_largest_number_keeps_its_digits(self, redis, record):
        redis.hset(KEYS.sequence, "last_batch", "another:99999999999999")
        record(1)

        assert redis.hget(KEYS.pending, "id") == b"another:100000000000000"

    @pytest.mark.parametrize(
        "text", ["rubbish", "x:007", "x:" + "9" * 30, "y" * 101 + ":1", b"\xff:1", "a\0b:1", ":1"]
    )
    def test_foreign_name_begins_a_generation(self, redis, record, text):
        """Read and written again, it would be another text."""
        redis.hset(KEYS.sequence, mapping={"last_batch": text, RECORDER.hex: "1 5"})
        record(2)

        assert redis.hget(KEYS.sequence, "last_batch") == f"{GENERATION[:-1]}2:0".encode()
        assert redis.hget(KEYS.pending, "id") == f"{GENERATION[:-1]}2:1".encode()

    def test_each_lost_sequence_begins_another_generation(self, redis, record):
        names = set()
        for number in (1, 2, 3):
            redis.flushall()
            record(number)
            names.add(redis.hget(KEYS.pending, "id"))

        assert len(names) == 3

    @pytest.mark.parametrize(
        ("runs", "after"),
        [
            (None, RUN_ID),
            ("older", f"older {RUN_ID}"),
            (f"{RUN_ID} newer", f"{RUN_ID} newer"),
            (f"{RUN_ID}0", f"{RUN_ID}0 {RUN_ID}"),
        ],
    )
    def test_runs(self, redis, record, runs, after):
        if runs:
            redis.set(KEYS.runs, runs)
        record(1)

        assert redis.get(KEYS.runs) == after.encode()

    @pytest.mark.parametrize("has_total", [True, False])
    def test_run_that_was_retired_comes_back_with_the_next_hits(self, redis, record, has_total):
        if has_total:
            redis.set(KEYS.total(A), 1, ex=60)
        record(1)
        redis.delete(KEYS.pending, KEYS.runs)
        record(2)

        assert redis.get(KEYS.runs) == RUN_ID.encode()

    def test_run_is_listed_again_if_the_list_was_evicted(self, redis, record):
        redis.set(KEYS.total(A), 1, ex=60)
        record(1)
        redis.delete(KEYS.runs)
        record(2)

        assert redis.get(KEYS.runs) == RUN_ID.encode()


class TestSentAgain:
    """A command in doubt is run again only if Redis still knows what it is expected to know."""

    SEQUENCE = {"last_batch": f"{GENERATION}:6", RECORDER.hex: "4 5"}

    @pytest.mark.parametrize("expected", [GENERATION, "-", "lost", "another"])
    @pytest.mark.parametrize("is_begun", [True, False])
    def test_what_redis_knows(self, redis, record, expected, is_begun):
        if is_begun:
            redis.hset(KEYS.sequence, mapping=self.SEQUENCE)
        before = content(redis)
        reply = record(5, expected=expected)

        if expected == (GENERATION if is_begun else "-"):
            assert reply[:3] == [0, [None], [COUNTS]]
            assert fields_of(redis, "pending")[A_TODAY] == b"1"
        else:
            assert reply is None
            assert content(redis) == before

    @pytest.mark.parametrize("place", ["pending", "batch"])
    @pytest.mark.parametrize("is_begun", [True, False])
    def test_hits_of_another_generation_are_left(self, redis, record, place, is_begun):
        if is_begun:
            redis.hset(KEYS.sequence, mapping=self.SEQUENCE)
        redis.hset(getattr(KEYS, place), mapping=batch(3, A_TODAY, generation="another"))
        before = content(redis)

        assert record(5, expected=GENERATION if is_begun else "-") is None
        assert content(redis) == before

    @pytest.mark.parametrize("expected", [GENERATION, "-", "another"])
    def test_command_that_has_run_changes_nothing(self, redis, record, expected):
        """It is answered, whatever is expected: the hits are in Redis, or were."""
        redis.hset(KEYS.sequence, mapping=self.SEQUENCE)
        redis.set(KEYS.epoch, 5)
        before = content(redis)

        assert record(4, expected=expected)[:3] == [0, [None], [COUNTS]]
        assert content(redis) == before

    def test_generation_is_named_after_the_command(self, redis, record):
        record(1, expected="-")

        assert redis.hget(KEYS.pending, "id") == f"{GENERATION}:1".encode()
        assert record(1, expected="-")[0] == 0
        assert redis.hget(KEYS.pending, A_TODAY) == b"1"
        assert record(2, expected="-") is None


class TestFieldsThatReturnToZero:
    def test_are_removed(self, redis, record):
        record(1, 5)
        record(2, -5)

        assert fields_of(redis, "pending") == {}
        assert not redis.hexists(KEYS.pending, "counters")
        assert redis.hget(KEYS.pending, "id") == f"{GENERATION}:1".encode()

    def test_others_stay(self, redis, record):
        record(1, 5)
        record(2, 3, object_id="b")
        record(3, -5)

        assert fields_of(redis, "pending") == {B_TODAY: b"3", M_TODAY: b"3"}
        assert redis.hget(KEYS.pending, "counters") == b"1"

    def test_sum_of_a_model_may_be_zero_before_its_counters_are(self, redis, record):
        record(1, 5)
        record(2, -5, object_id="b")

        assert fields_of(redis, "pending") == {A_TODAY: b"5", B_TODAY: b"-5"}
        record(3, 2, object_id="b")
        assert fields_of(redis, "pending") == {A_TODAY: b"5", B_TODAY: b"-3", M_TODAY: b"2"}
        assert redis.hget(KEYS.pending, "days") == MODEL_TODAY.encode()
        assert redis.hget(KEYS.pending, "counters") == b"2"

    def test_counter_that_comes_back_is_counted_again(self, redis, record):
        for number, amount in enumerate((5, -5, 2, 7, -9, 1), start=1):
            record(number, amount)

        assert fields_of(redis, "pending") == {A_TODAY: b"1", M_TODAY: b"1"}
        assert redis.hget(KEYS.pending, "counters") == b"1"
        assert redis.hget(KEYS.pending, "days") == MODEL_TODAY.encode()


@pytest.mark.parametrize("has_total", [True, False])
@pytest.mark.parametrize(
    ("held", "threshold", "crossed"),
    [(0, 0, 0), (0, 1, 0), (1, 1, 1), (2, 1, 0), (4, 5, 0), (5, 5, 1)],
)
def test_threshold_is_crossed_once(redis, record, held, threshold, crossed, has_total):
    if has_total:
        redis.set(KEYS.total(A), 1, ex=60)
    for n in range(held):
        record(n + 1, object_id=f"{n}")

    assert record(held + 1, threshold=threshold)[0] == crossed
    assert record(held + 2, threshold=threshold)[0] == 0
    assert redis.hget(KEYS.pending, "counters") == str(held + 1).encode()


def test_refused_hit_is_counted_apart(redis, record):
    redis.set(KEYS.total(A), 10)

    assert record(1, refusal="bot") == [0, [b"10"], [COUNTS], None]
    assert record(1, refusal="bot") == [0, [b"10"], [COUNTS], None]
    assert redis.hgetall(KEYS.pending) == {
        b"r:2026-01-01:views:bot": b"1",
        b"id": f"{GENERATION}:1".encode(),
    }


def test_hits_that_are_taken_back_are_not_refused(redis, record):
    assert record(1, -3, refusal="bot")[2] == [COUNTS]
    assert not redis.exists(KEYS.pending)


def test_moment_of_the_first_hit_stays(redis, record):
    record(1, refusal="bot")
    assert not redis.hexists(KEYS.pending, "since")
    record(2)
    redis.hset(KEYS.pending, "since", 1000)
    record(3, 5)
    record(4, object_id="b")
    record(5, -6)

    assert redis.hget(KEYS.pending, "since") == b"1000"
    record(6, -1, object_id="b")
    record(7)
    assert with_now(redis.hgetall(KEYS.pending))[b"since"] == NOW


def test_hits_of_all_objects_of_a_model_add_up(redis, server):
    hits = [
        NewHits(CounterKey(5, name, counter), TODAY, amount)
        for name, counter, amount in [("a", "views", 2), ("b:c", "views", 3), ("a", "likes", 4)]
    ]
    replies_to(server, [build_record_call(KEYS, hits, CommandId(RECORDER.hex, 1, RUN_ID), 0)])

    found = redis.hgetall(KEYS.pending)
    assert found[M_TODAY.encode()] == b"5"
    assert found[b"m:5:likes:2026-01-01"] == b"4"
    assert found[b"days"] == f"{MODEL_TODAY} 5:likes:2026-01-01".encode()
    assert found[b"counters"] == b"3"


def test_day_whose_name_is_part_of_another_is_noted(redis, server):
    hits = [NewHits(CounterKey(n, "a", "views"), TODAY, 1) for n in (15, 5, 5, 15)]
    replies_to(server, [build_record_call(KEYS, hits, CommandId(RECORDER.hex, 1, RUN_ID), 0)])

    assert redis.hget(KEYS.pending, "days") == f"1{MODEL_TODAY} {MODEL_TODAY}".encode()
