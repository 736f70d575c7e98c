"""Totals are those of the tables at each instant, while something else than a hit changes these."""

from __future__ import annotations

import datetime
import signal
from unittest import mock

import pytest

from django_hitcount import correct_hits, import_hits, move_hits, undo_import
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.importing import Objects
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Article, Page
from tests.faults.test_kills import wrapper
from tests.redis_server import names_of
from tests.sessions import wait_for_transactions_of_the_dead
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = day_of() - datetime.timedelta(days=30)


@pytest.fixture
def pair(redis_buffer) -> tuple[Article, Page]:
    """Two objects whose totals Redis knows, and whose hits are in the tables."""
    old, new = Article.objects.create(), Page.objects.create(path="new")
    import_hits(Objects([(old, LONG_AGO, 2)]), import_id="first")
    record_hit(old, amount=3)
    record_hit(new, amount=7)
    flush_hits()
    assert get_hits([old, new]) == {old: 5, new: 7}
    return old, new


CHANGES = {
    "move": lambda old, new: move_hits(old, to=new),
    "correction": lambda old, new: correct_hits(
        old, -2, day=day_of(), reason="a test", user="somebody"
    ),
    "import": lambda old, new: import_hits(Objects([(old, day_of(), 9)]), import_id="second"),
    "undo": lambda old, new: undo_import("first"),
}

each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def compare(pair) -> None:
    for _ in range(2):  # Redis may keep what was read the first time.
        assert get_hits(pair) == slot_sums(pair)


@each_change
def test_before_and_after_each_commit(pair, change):
    commit, seen = wrapper()._commit, []

    def watched(self):
        seen.append(children.run(lambda: compare(pair)))
        commit(self)
        seen.append(children.run(lambda: compare(pair)))

    with mock.patch.object(wrapper(), "_commit", watched):
        change(*pair)

    assert {*seen} == {0}
    compare(pair)


@each_change
def test_after_a_kill(pair, change):
    """Nobody has dropped a total or flushed yet."""
    commit, before = wrapper()._commit, slot_sums(pair)

    def die_if_changed(self):
        commit(self)
        if slot_sums(pair) != before:
            children.die()
        self._rollback()  # The query began a transaction.

    with mock.patch.object(wrapper(), "_commit", die_if_changed):
        assert children.run(lambda: change(*pair)) == -signal.SIGKILL
    wait_for_transactions_of_the_dead()

    assert slot_sums(pair) != before
    compare(pair)


def test_hits_count_meanwhile_and_a_pause_ends_by_itself(pair, redis):
    old, _ = pair
    key = counter_key(old, counter="views")
    with mock.patch.object(get_buffer(), "_resume_totals"):
        get_buffer().pause_totals([key])

    assert [record_hit(old).total for _ in range(2)] == [6, 7]

    total = names_of(redis, key).total(key.text)
    assert redis.get(total) == b"paused"
    assert 20 < redis.ttl(total) <= 30
    get_buffer().discard_totals([key])
    assert [get_hits(old), record_hit(old).total] == [7, 8]
    assert redis.get(total) == b"8"
