"""move_hits() is killed at each step; totals stay right, and the next call moves what is left."""

from __future__ import annotations

import datetime
import signal
from unittest import mock

import pytest
from django.db import OperationalError

from django_hitcount import moving
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db import slots, taking
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.moving import move_hits
from django_hitcount.outages import missed_records
from django_hitcount.reading import get_hits, get_visitors
from tests import children
from tests.app.models import Article, Photo
from tests.faults.test_kills import dies_after, dies_before, wrapper
from tests.sessions import wait_for_transactions_of_the_dead
from tests.tables import daily_sums, slot_sums
from tests.visiting import visit

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = day_of() - datetime.timedelta(days=30)

STEPS = {
    "before the flush": lambda: dies_before(moving, "flush_hits"),
    "after the flush": lambda: dies_after(moving, "flush_hits"),
    **{
        f"before row {call} is written": lambda call=call: dies_before(
            moving, "take_rows", call=call
        )
        for call in (1, 2, 3)
    },
    "before the totals are deleted": lambda: dies_before(taking, "mark_stale"),
    "before the rows are deleted": lambda: dies_before(taking, "delete_by_id"),
    "before the hits of models": lambda: dies_before(slots, "add_to_models"),
    "before the record": lambda: dies_before(missed_records, "save_of_totals"),
    "before the first COMMIT": lambda: dies_before(wrapper(), "_commit"),
    "after the first COMMIT": lambda: dies_after(wrapper(), "_commit"),
    **{
        f"before COMMIT {call}": lambda call=call: dies_before(wrapper(), "_commit", call=call)
        for call in range(2, 8)
    },
    "before the sketches are dropped": lambda: dies_before(type(get_buffer()), "discard_objects"),
    "after the sketches are dropped": lambda: dies_after(type(get_buffer()), "discard_objects"),
    "before the second flush": lambda: dies_before(moving, "flush_hits", call=2),
    "after the second round": lambda: dies_before(moving, "forget_numbers"),
}


@pytest.fixture
def pair(rule) -> tuple[Photo, Article]:
    """Hits and visitors of today and of a closed day, in the tables and in the buffer."""
    rule("daily", visitors=True)
    old, new = Photo.objects.create(), Article.objects.create()
    for obj in (old, new):
        visit(obj, [1, 2], at=LONG_AGO)
        visit(obj, [1, 2, 3])
    flush_hits()
    compact_hits()
    for obj in (old, new):
        visit(obj, [4])
    assert (get_hits(old), get_hits(new)) == (6, 6)
    return old, new


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_nothing_is_lost_or_doubled(pair, step):
    old, new = pair
    with STEPS[step]()():
        code = children.run(lambda: move_hits(old, to=new))
    # Without Redis there are fewer steps.
    assert code == -signal.SIGKILL or (code == 0 and not get_buffer().keeps_hits)
    wait_for_transactions_of_the_dead()

    flush_hits()  # It drops the totals that are wrong.
    assert get_hits(old) + get_hits(new) == 12
    assert sum(slot_sums(pair).values()) == 12

    move_hits(old, to=new)

    assert (get_hits(old), get_hits(new)) == (0, 12)
    flush_hits()
    assert slot_sums(pair) == daily_sums(pair) == {old: 0, new: 12}
    assert [get_visitors(obj) for obj in pair] == [0, 8]
    days = {"first_day": LONG_AGO, "last_day": LONG_AGO}
    assert [get_visitors(obj, **days) for obj in pair] == [0, 4]
    visit(old, [9])
    flush_hits()
    compact_hits()
    assert [get_visitors(obj) for obj in pair] == [1, 8]
    assert (get_hits(old), get_hits(new)) == (1, 12)


def test_totals_in_redis_are_read_again_after_a_kill(redis_buffer):
    """The next flush finds the record of what was moved."""
    old, new = Article.objects.create(), Article.objects.create()
    for _ in range(2):
        assert old.record_hit().counted
        assert new.record_hit().counted
    flush_hits()
    assert (get_hits(old), get_hits(new)) == (2, 2)

    with dies_before(moving, "flush_hits", call=2)():
        assert children.run(lambda: move_hits(old, to=new)) == -signal.SIGKILL

    flush_hits()
    assert (get_hits(old), get_hits(new)) == (0, 4)


def test_answer_to_a_commit_that_is_lost_doubles_nothing(pair):
    """The transaction is tried again, and finds nothing to move."""
    old, new = pair
    commit, lost = wrapper()._commit, []

    def fail_after(self):
        commit(self)
        if len(lost) < 3:
            lost.append(True)
            raise OperationalError("the server has gone away")

    with mock.patch.object(wrapper(), "_commit", fail_after):
        move_hits(old, to=new)

    assert len(lost) == 3
    assert (get_hits(old), get_hits(new)) == (0, 12)
    flush_hits()
    assert slot_sums(pair) == daily_sums(pair) == {old: 0, new: 12}
    assert [get_visitors(obj) for obj in pair] == [0, 8]
