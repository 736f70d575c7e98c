"""Redis goes back in time: no hit counts twice, and no hits are lost that Redis has not lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

from django_hitcount import series
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import RedisBuffer, claiming
from django_hitcount.buffers.redis.link import Link
from django_hitcount.counters.days import day_of
from django_hitcount.db import slots
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.sums import DayRange
from django_hitcount.db.tables import LastBatch, MissedRecord
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.proxies import KeepingProxy
from tests.servers import HOST, Valkey, wait_until
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


@pytest.fixture
def articles():
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(20))


@pytest.fixture
def use(settings):
    """Send hits to the server, or the proxy, that listens on a port."""

    def use(port: int) -> None:
        change_alias(settings, LOCATION=f"redis://{HOST}:{port}/0")
        settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": "hitcount"}

    return use


@pytest.fixture
def server(tmp_path: Path, use) -> Iterator[Valkey]:
    """A server that takes a snapshot when a test sends SAVE."""
    server = Valkey(tmp_path)
    server.start()
    use(server.port)
    yield server
    server.stop(signal.SIGKILL)


@pytest.fixture
def saved(server, articles) -> None:
    """Three hits of each article are in the last snapshot."""
    record_hits(articles, amount=3)
    server.ask("SAVE")


def restart(server: Valkey) -> None:
    """Kill the server, and start it with the last snapshot."""
    server.stop(signal.SIGKILL)
    server.start()


def assert_each_has(articles, hits):
    """Check totals and days before the next flush, and the tables and totals after it."""
    expected = dict.fromkeys(articles, hits)
    today = day_of()

    assert get_hits(articles) == expected
    assert get_hits(articles[0], first_day=today, last_day=today) == hits
    flush_hits()
    assert slot_sums(articles) == daily_sums(articles) == expected
    assert get_hits(articles) == expected
    assert flush_hits() == flushing.Flush()


def test_snapshot_from_before_a_flush(saved, server, articles):
    flush_hits()
    restart(server)

    assert_each_has(articles, 3)


def test_hits_since_the_restart_are_not_taken_for_flushed_ones(saved, server, articles):
    flush_hits()
    restart(server)

    assert {hit.total for hit in record_hits(articles)} == {4}
    assert_each_has(articles, 4)


def test_snapshot_of_hits_that_were_never_flushed(saved, server, articles):
    """They count, also in totals that are shown before a flush finds them."""
    restart(server)

    assert {hit.total for hit in record_hits(articles)} == {4}
    restart(server)  # The last hits are lost, as they are in no snapshot.
    assert_each_has(articles, 3)


def test_counters_that_are_read_together_have_hits_of_their_own(saved, server, articles):
    """Also those of an earlier run."""
    record_hits(articles, counter="downloads", amount=20)
    server.ask("SAVE")
    restart(server)
    record_hits(articles)
    record_hits(articles, counter="downloads")
    today = day_of()

    keys = [counter_key(articles[0], counter=counter) for counter in ("views", "downloads")]
    sums = series.read_counters(keys, DayRange(today, today))
    assert sums == {("views", today): 4, ("downloads", today): 21}


def test_totals_from_before_are_void(server, articles):
    record_hits(articles)
    server.ask("SAVE")
    record_hits(articles)
    flush_hits()
    restart(server)

    assert set(get_hits(articles).values()) == {2}


def test_the_same_snapshot_again_and_again(saved, server, articles):
    snapshot = (server.directory / "dump.rdb").read_bytes()
    for hits in (3, 4, 5):
        assert_each_has(articles, hits)
        server.stop(signal.SIGKILL)
        (server.directory / "dump.rdb").write_bytes(snapshot)
        server.start()
        record_hits(articles)


def test_snapshot_that_is_older_than_the_ledger(saved, server, articles):
    """The last batch of each generation stays in the ledger."""
    flush_hits()
    record_hits(articles)
    flush_hits()

    assert {batch.number for batch in LastBatch.objects.all()} == {2}
    restart(server)

    assert_each_has(articles, 4)


def test_redis_that_comes_back_empty_between_claim_and_apply(server, articles):
    """Totals that were loaded meanwhile get the hits of the batch."""
    record_hits(articles, amount=8)
    flush_hits()
    record_hits(articles, amount=7)
    apply, shown = flushing.apply, []

    def restart_and_apply(batch, **options):
        if not shown:
            restart(server)
            shown.append(set(get_hits(articles).values()))
        return apply(batch, **options)

    with mock.patch.object(flushing, "apply", restart_and_apply), suppress(ExceptionGroup):
        flush_hits()

    # What the flusher had read is saved; of the other partitions, Redis lost what was pending.
    assert shown == [{8}]
    expected = slot_sums(articles)
    assert set(expected.values()) == {8, 15}
    assert get_hits(articles) == expected


STEPS = {
    "before the claim": (RedisBuffer, "claim"),
    "after the claim": (flushing, "flush_batch"),
    "before the batch is applied": (flushing, "apply"),
    "before the totals": (slots, "add_totals"),
    "before the settle": (RedisBuffer, "settle"),
}


def at_step(step, work):
    """A patch that calls ``work`` once, before the step."""
    owner, name = STEPS[step]
    original = getattr(owner, name)
    left = [work]

    def after_work(*args, **kwargs):
        if left:
            left.pop()()
        return original(*args, **kwargs)

    return mock.patch.object(owner, name, after_work)


@pytest.mark.parametrize("step", STEPS)
def test_snapshot_from_the_middle_of_a_flush(server, articles, step):
    record_hits(articles, amount=3)
    with at_step(step, lambda: server.ask("SAVE")):
        flush_hits()
    restart(server)

    record_hits(articles)
    assert_each_has(articles, 4)


@pytest.mark.parametrize(
    ("owner", "name", "number"), [(claiming, "id_text", 2), (claiming._Fields, "add", 1)]
)
def test_redis_restarts_while_a_batch_is_read(tmp_path, use, settings, owner, name, number):
    """
    Each start orders the fields of a hash anew, so the rest of them would be others.

    It restarts while the second piece is on its way, or before it is asked for.
    """
    server = Valkey(tmp_path, options=["--hash-max-listpack-entries", "0"])
    server.start()
    use(server.port)
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 1}
    try:
        articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(300))
        record_hits(articles)
        original, calls = getattr(owner, name), []

        def restart_at_the_second_piece(*args):
            calls.append(args)
            if len(calls) == number:
                server.ask("SAVE")
                restart(server)
            return original(*args)

        with (
            mock.patch.object(claiming, "FIELDS_AT_A_TIME", 20),
            mock.patch.object(owner, name, restart_at_the_second_piece),
        ):
            flush_until_done()
        assert_each_has(articles, 1)
    finally:
        server.stop(signal.SIGKILL)


class Death(BaseException):
    """The flusher dies."""


@pytest.mark.parametrize("step", STEPS)
def test_flusher_and_redis_die_at_a_step(saved, server, articles, step):
    def die():
        raise Death

    with at_step(step, die), suppress(Death):
        flush_hits()
    restart(server)

    record_hits(articles)
    assert_each_has(articles, 4)


@pytest.mark.parametrize("step", [step for step in STEPS if step != "before the totals"])
def test_redis_goes_back_under_a_flusher_that_goes_on(saved, server, articles, step):
    """Another flusher takes the same hits out of the snapshot meanwhile."""

    def go_back():
        restart(server)
        flush_until_done()

    with at_step(step, go_back), suppress(ExceptionGroup):
        flush_hits()

    record_hits(articles)
    assert_each_has(articles, 4)


def test_flusher_that_has_read_more_than_the_snapshot_has(saved, server, articles):
    """Totals were loaded with what the snapshot has; the tables get what it had read."""
    record_hits(articles)
    asleep = [batch for p in range(16) if (batch := get_buffer().claim(p))]
    restart(server)
    for partition in range(16):
        get_buffer().claim(partition)
    assert get_hits(articles) == dict.fromkeys(articles, 3)

    for batch in asleep:
        flushing.flush_batch(get_buffer(), batch)

    assert_each_has(articles, 4)


def test_append_only_file_that_lacks_the_last_second(tmp_path, use, articles):
    options = ["--appendonly", "yes", "--appendfsync", "everysec"]
    server = Valkey(tmp_path, options=options)
    server.start()
    use(server.port)
    try:
        record_hits(articles, amount=3)
        (log,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
        size = log.stat().st_size
        flush_hits()
        assert log.stat().st_size > size
        server.stop(signal.SIGKILL)
        with log.open("ab") as file:
            file.truncate(size)
        server.start()

        record_hits(articles)
        assert_each_has(articles, 4)
    finally:
        server.stop(signal.SIGKILL)


def test_replica_that_takes_over_without_the_claim(tmp_path, use, articles):
    for name in "ab":
        (tmp_path / name).mkdir()
    master = Valkey(tmp_path / "a", options=["--repl-diskless-sync-delay", "0"])
    replica = Valkey(tmp_path / "b")
    master.start()
    replica.start()
    use(master.port)
    try:
        replica.ask("REPLICAOF", HOST, str(master.port))
        wait_until(
            lambda: replica.ask("INFO", "replication")["master_link_status"] == "up", "replica"
        )
        record_hits(articles, amount=3)
        assert master.ask("WAIT", "1", "10000") == 1
        replica.pause()
        flush_hits()
        master.stop(signal.SIGKILL)
        replica.resume()
        replica.ask("REPLICAOF", "NO", "ONE")
        use(replica.port)

        record_hits(articles)
        assert_each_has(articles, 4)
    finally:
        replica.resume()
        replica.stop(signal.SIGKILL)
        master.stop(signal.SIGKILL)


def test_client_behind_a_proxy_that_hides_a_restart(server, use, articles):
    """The client learns of the restart before it writes, even if others knew it before."""
    proxy = KeepingProxy(server.port)
    use(proxy.port)
    record_hits(articles, amount=3)
    behind = get_buffer()
    server.ask("SAVE")
    flush_hits()
    restart(server)

    use(server.port)
    record_hits(articles[:1])
    assert get_buffer() is not behind
    use(proxy.port)
    with mock.patch("django_hitcount.recording.get_buffer", return_value=behind):
        assert [hit.total for hit in record_hits(articles)] == [5, *[4] * 19]
    flush_hits()
    assert slot_sums(articles) == {**dict.fromkeys(articles, 4), articles[0]: 5}
    proxy.close()


@contextmanager
def lost_answers() -> Iterator[None]:
    """Redis runs the commands, and their answers are lost."""
    exchange = Link.exchange

    def send_and_lose(link, commands, replies):
        exchange(link, commands, [])
        raise TimeoutError

    with mock.patch.object(Link, "exchange", send_and_lose):
        yield


def test_command_in_doubt_that_may_have_been_flushed_is_dropped(server, articles, caplog):
    """Redis has run it, a flush has taken its hits, and then Redis went back in time."""
    record_hits(articles)
    server.ask("SAVE")
    with lost_answers():
        record_hits(articles)
    notes = [*MissedRecord.objects.all()]
    assert sum(len(note.hits) for note in notes) == 20
    MissedRecord.objects.all().delete()
    flush_until_done()
    assert slot_sums(articles) == dict.fromkeys(articles, 2)
    MissedRecord.objects.bulk_create(notes)
    restart(server)

    flush_until_done()
    assert_each_has(articles, 2)
    assert "in doubt" in caplog.text


def test_command_in_doubt_that_is_noted_after_the_older_state_was_flushed(server, articles):
    """Redis then has the number of the batch that was flushed before, but not its hits."""
    record_hits(articles)
    server.ask("SAVE")
    with lost_answers():
        record_hits(articles)
    notes = [*MissedRecord.objects.all()]
    MissedRecord.objects.all().delete()
    flush_until_done()
    restart(server)
    flush_until_done()
    MissedRecord.objects.bulk_create(notes)

    flush_until_done()
    assert_each_has(articles, 2)


@pytest.mark.parametrize("is_late", [True, False])
def test_command_in_doubt_that_a_sleeping_flusher_has_read(server, articles, is_late):
    """Another flusher has claimed the same batch from an older state meanwhile."""
    record_hits(articles)
    server.ask("SAVE")
    with lost_answers():
        record_hits(articles)
    notes = [*MissedRecord.objects.all()]
    MissedRecord.objects.all().delete()
    asleep = [batch for p in range(16) if (batch := get_buffer().claim(p))]
    restart(server)
    for partition in range(16):
        get_buffer().claim(partition)
    MissedRecord.objects.bulk_create(notes)
    if is_late:
        get_buffer().catch_up()
        assert MissedRecord.objects.exists()  # Not decided yet.

    for batch in asleep:
        flushing.flush_batch(get_buffer(), batch)
    flush_until_done()
    assert_each_has(articles, 2)


def test_command_in_doubt_that_no_flush_has_taken_is_sent_again(server, articles):
    record_hits(articles)
    server.ask("SAVE")
    with lost_answers():
        record_hits(articles)
    restart(server)

    flush_until_done()
    assert_each_has(articles, 2)


def flush_until_done():
    """Flush until that works: after a failure, the breaker leaves Redis alone for a while."""

    def flushes():
        with suppress(ExceptionGroup):
            flush_hits()
            return True
        return False

    wait_until(flushes, "a flush")
