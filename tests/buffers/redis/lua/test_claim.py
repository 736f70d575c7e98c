"""Which batch claim.lua gives to a flusher."""

from __future__ import annotations

from functools import partial

import pytest

from django_hitcount.buffers.redis.keys import RunKeys
from tests.buffers.redis.lua.partition import (
    A_TODAY,
    B_TODAY,
    GENERATION,
    KEYS,
    NOW,
    REMEMBERED_SECONDS,
    RUN_ID,
    batch,
    content,
    day_number,
    moment,
)

NOW_KEYS, OLDER_KEYS = RunKeys(3, "now"), RunKeys(3, "older")
RUN = RUN_ID.encode()
G1, G6, G7 = (f"{GENERATION}:{n}".encode() for n in (1, 6, 7))
CLAIM = 4711
CLAIMED = {b"claimed_at": NOW, b"claim": b"4711"}
HASHES = ("pending", "batch")
FOREIGN_NAMES = [
    *("rubbish", "x:007", "x:" + "9" * 30, "y" * 101 + ":1", b"\xff:1", "a\0b:1", ":1", ""),
]


@pytest.fixture
def claim(call):
    """Claim the hits of the current run, whose generation is in the ledger."""

    def run(opened=GENERATION, number=CLAIM, names=KEYS):
        keys = [names.runs, names.malformed, names.pending, names.epoch]
        return call("claim", keys, opened, REMEMBERED_SECONDS, number)

    return run


@pytest.fixture
def claim_later(claim):
    """Claim after a restart: the run with the hits is an earlier one."""
    return partial(claim, names=NOW_KEYS)


def test_nothing_pending(redis, claim):
    assert claim() == [[], None, None]
    assert content(redis) == {}


def test_pending_becomes_the_batch(redis, claim):
    redis.hset(KEYS.pending, mapping=batch(7, A_TODAY, since=1000))
    redis.hset(KEYS.sequence, "last_batch", G6)
    redis.set(KEYS.epoch, 9)

    assert claim() == [[], RUN, G7, 1]
    assert content(redis) == {
        "batch": {A_TODAY.encode(): b"1", b"id": G7, b"since": b"1000", **CLAIMED},
        "sequence": {
            b"last_batch": G7,
            b"last_claim": b"4711",
            b"opened": GENERATION.encode(),
            b"day": NOW,
        },
    }


class TestOpening:
    """The generation must be in the ledger before a flusher has hits of it."""

    @pytest.fixture(autouse=True)
    def pending(self, redis):
        redis.hset(KEYS.pending, mapping=batch(1, A_TODAY))
        redis.hset(KEYS.sequence, "last_batch", f"{GENERATION}:0")

    @pytest.mark.parametrize("opened", ["", "another"])
    @pytest.mark.parametrize("before", [None, "another"])
    def test_generation_that_must_be_opened(self, redis, claim, opened, before):
        if before:
            redis.hset(KEYS.sequence, "opened", before)
        found = content(redis)

        assert claim(opened) == [[], RUN, GENERATION.encode()]
        assert content(redis) == found

    def test_generation_that_was_opened(self, redis, claim):
        redis.hset(KEYS.sequence, "opened", GENERATION)

        assert claim("") == [[], RUN, G1, 1]

    def test_generation_that_the_caller_has_opened(self, redis, claim):
        redis.hset(KEYS.sequence, "opened", "another")

        assert claim() == [[], RUN, G1, 1]
        assert redis.hget(KEYS.sequence, "opened") == GENERATION.encode()

    def test_pending_hits_may_be_of_another_generation_than_the_sequence(self, redis, claim):
        """The sequence was lost, and hits came before the next claim."""
        redis.hset(KEYS.sequence, mapping={"last_batch": "another:0", "opened": "another"})

        assert claim("") == [[], RUN, GENERATION.encode()]
        assert claim() == [[], RUN, G1, 1]
        assert redis.hget(KEYS.sequence, "last_batch") == b"another:0"

    def test_sequence_is_lost(self, redis, claim):
        redis.delete(KEYS.sequence)

        assert claim() == [[], RUN, G1, 1]
        assert content(redis)["sequence"] == {b"opened": GENERATION.encode(), b"day": NOW}

    def test_batch_that_is_set_aside_was_opened_before(self, redis, claim):
        redis.rename(KEYS.pending, KEYS.batch)

        assert claim("") == [[], RUN, G1, 0]


def test_batch_that_is_set_aside_comes_back(redis, claim):
    redis.hset(KEYS.pending, mapping=batch(6, A_TODAY))
    redis.hset(KEYS.sequence, "last_batch", f"{GENERATION}:5")
    claim()
    redis.hset(KEYS.batch, "claimed_at", 2000)
    redis.hset(KEYS.pending, mapping=batch(7, B_TODAY))
    before = content(redis)

    assert claim() == [[], RUN, G6, 0]
    assert content(redis) == before
    assert before["batch"] == {
        A_TODAY.encode(): b"1",
        b"id": G6,
        **CLAIMED,
        b"claimed_at": b"2000",
    }


@pytest.mark.parametrize("name", HASHES)
def test_key_of_another_type_is_moved_and_reported(redis, claim, name):
    key = getattr(KEYS, name)
    for n in range(2):
        redis.rpush(key, f"somebody else's {n}")
        place = f"{KEYS.malformed}:{key}#{n}".encode()

        assert claim(number=n) == [[place], None, None]
        assert redis.lrange(place, 0, -1) == [f"somebody else's {n}".encode()]
    assert not redis.exists(key)


def test_foreign_batch_does_not_keep_hits_from_a_flush(redis, claim):
    redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))
    redis.rpush(KEYS.batch, "somebody else's")

    assert claim() == [[f"{KEYS.malformed}:{KEYS.batch}#{CLAIM}".encode()], RUN, G7, 1]
    assert redis.hget(KEYS.batch, A_TODAY) == b"1"


@pytest.mark.parametrize("text", [None, *FOREIGN_NAMES])
@pytest.mark.parametrize("name", HASHES)
def test_hash_without_a_name_of_ours_is_moved_and_reported(redis, claim, name, text):
    """We did not write it: ours has its name from the first hit on."""
    key, other = (getattr(KEYS, n) for n in (name, *{*HASHES} - {name}))
    redis.hset(key, mapping={A_TODAY: 1, **({} if text is None else {"id": text})})
    theirs = redis.hgetall(key)

    place = f"{KEYS.malformed}:{key}#{CLAIM}".encode()
    assert claim() == [[place], None, None]
    assert redis.hgetall(place) == theirs
    assert not redis.exists(key, other, KEYS.sequence, KEYS.epoch)
    assert claim() == [[], None, None]


@pytest.mark.parametrize("text", FOREIGN_NAMES)
def test_foreign_name_of_the_last_batch_is_left(redis, claim, text):
    """The next hit begins a generation."""
    redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))
    redis.hset(KEYS.sequence, "last_batch", text)
    before = redis.hget(KEYS.sequence, "last_batch")

    assert claim() == [[], RUN, G7, 1]
    assert redis.hget(KEYS.sequence, "last_batch") == before


@pytest.mark.parametrize("name", ["epoch", "sequence", "malformed"])
@pytest.mark.parametrize("put", ["set", "rpush"])
def test_foreign_values_of_other_keys_do_no_harm(redis, claim, name, put):
    redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))
    getattr(redis, put)(getattr(KEYS, name), "rubbish")

    moved, *claimed = claim()
    assert claimed == [RUN, G7, 1]
    place = f"{KEYS.malformed}:{getattr(KEYS, name)}#{CLAIM}".encode()
    assert moved == [place] * (name != "epoch")
    assert not redis.exists(KEYS.epoch)
    assert redis.hget(KEYS.sequence, "opened") == GENERATION.encode()


class TestRecorders:
    """The last number of a recorder is remembered for seven days, and longer among few."""

    LAST_CLAIM = day_number(3)

    def recorder(self, days):
        """A recorder whose last command came so many days ago."""
        return {f"{days:032x}": f"9 {moment(days)}"}

    @pytest.mark.parametrize(
        ("fields", "forgotten"), [(256, set()), (257, {8, 30}), (1000, {8, 30})]
    )
    def test_forgotten(self, redis, claim, fields, forgotten):
        names = {"last_batch": G6, "opened": GENERATION, "day": self.LAST_CLAIM}
        others = {"short": "9 1", "x" * 32: "rubbish", "y" * 32: "9"}
        for days in (0, 6, 8, 30):
            others |= self.recorder(days)
        recent = {f"{n:032x}": f"9 {moment()}" for n in range(100, 100 + fields - 10)}
        redis.hset(KEYS.sequence, mapping={**names, **others, **recent})
        assert redis.hlen(KEYS.sequence) == fields
        redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))
        claim()

        left = {field.decode() for field in redis.hkeys(KEYS.sequence)}
        gone = {name for days in forgotten for name in self.recorder(days)}
        assert left == {*names, "last_claim", *others, *recent} - gone
        assert redis.hget(KEYS.sequence, "day") == str(day_number()).encode()

    @pytest.mark.parametrize(
        ("day", "is_looked_for"), [("rubbish", True), (None, True), (day_number, False)]
    )
    def test_are_looked_for_once_a_day(self, redis, claim, day, is_looked_for):
        redis.hset(KEYS.sequence, mapping={f"{n:032x}": "9 1" for n in range(300)})
        if day:
            redis.hset(KEYS.sequence, "day", day() if callable(day) else day)
        redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))
        claim()

        assert (redis.hlen(KEYS.sequence) < 300) == is_looked_for


class TestRunThatIsOver:
    @pytest.fixture(autouse=True)
    def earlier(self, redis):
        redis.mset({KEYS.epoch: 9, NOW_KEYS.epoch: 4, KEYS.runs: f"{RUN_ID} now"})
        redis.hset(KEYS.sequence, mapping={"last_batch": G6, "r" * 32: "5 1"})

    def test_is_claimed_and_then_retired(self, redis, claim_later):
        redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))

        assert claim_later() == [[], RUN, G7, 1]
        assert redis.get(KEYS.runs) == f"{RUN_ID} now".encode()
        assert claim_later() == [[], RUN, G7, 0]
        redis.delete(KEYS.batch)
        assert claim_later() == [[], None, None]
        assert redis.get(KEYS.runs) == b"now"
        assert not redis.exists(KEYS.epoch, NOW_KEYS.epoch)

    def test_numbers_of_commands_are_kept_for_seven_days(self, redis, claim_later):
        """Commands of that run may still be in doubt."""
        claim_later()

        assert redis.hget(KEYS.sequence, "r" * 32) == b"5 1"
        week = REMEMBERED_SECONDS
        assert week - 60 < redis.ttl(KEYS.sequence) <= week

    def test_generation_that_must_be_opened(self, redis, claim_later):
        redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))

        assert claim_later("") == [[], RUN, GENERATION.encode()]
        assert redis.ttl(KEYS.sequence) == -1

    def test_run_that_comes_back_is_remembered_again(self, redis, claim, claim_later):
        claim_later()
        redis.hset(KEYS.pending, mapping=batch(7, A_TODAY))
        claim()

        assert redis.ttl(KEYS.sequence) == -1

    def test_hits_of_several_runs_come_one_at_a_time(self, redis, claim_later):
        redis.set(KEYS.runs, f"older {RUN_ID} now")
        for names in (OLDER_KEYS, KEYS, NOW_KEYS):
            redis.hset(names.pending, mapping=batch(7, A_TODAY))
            redis.hset(names.sequence, "opened", GENERATION)
        found = []
        for names in (KEYS, OLDER_KEYS, NOW_KEYS):
            found.append(claim_later()[1])
            redis.delete(names.batch)

        assert found == [RUN, b"older", b"now"]
        assert claim_later() == [[], None, None]
        assert redis.get(KEYS.runs) == b"now"

    def test_current_run_is_not_retired(self, redis, claim):
        claim()

        assert redis.get(KEYS.runs) == RUN
        assert redis.ttl(KEYS.sequence) == -1
        assert redis.get(KEYS.epoch) == b"9"
