from __future__ import annotations

from unittest import mock

import pytest
from celery import Celery
from django.core.management import call_command

from django_hitcount import tasks
from django_hitcount.db.tables import HitSlot
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.recording import record_hit
from django_hitcount.throttle import Throttle
from tests.app.models import Article
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(redis_buffer) -> Article:
    article = Article.objects.create(title="Tea")
    record_hit(article, amount=3)
    return article


def test_tasks_flush_and_compact(article):
    tasks.flush_hits()
    record_hit(article)
    tasks.flush_hits()
    tasks.compact_hits()

    assert [*HitSlot.objects.values_list("slot", "hits")] == [(0, 4)]


def test_commands_print_what_they_did(article, capsys):
    call_command("flush_hits")
    call_command("compact_hits")
    call_command("flush_hits")
    call_command("compact_hits")

    assert capsys.readouterr().out.splitlines() == [
        "Flushed 3 hits of 1 counter in 1 batch.",
        "Folded 2 rows in 2 pieces.",
        "Flushed 0 hits of 0 counters in 0 batches.",
        "Folded 0 rows in 0 pieces.",
    ]
    assert slot_sums([article]) == {article: 3}


def test_commands_that_are_told_to_be_quiet(article, capsys):
    for command in ("flush_hits", "compact_hits"):
        call_command(command, verbosity=0)

    assert capsys.readouterr() == ("", "")
    assert slot_sums([article]) == {article: 3}


def test_beat_schedule_names_the_tasks():
    app = Celery("site", set_as_current=False)
    app.conf.beat_schedule = tasks.beat_schedule()
    app.finalize()

    schedule = {entry["task"]: entry["schedule"] for entry in app.conf.beat_schedule.values()}
    assert schedule == {"django_hitcount.flush_hits": 10, "django_hitcount.compact_hits": 600}
    assert set(schedule) <= set(app.tasks)


def test_beat_schedule_at_other_times():
    schedule = tasks.beat_schedule(flush_seconds=2, compact_seconds=60)

    assert [(e["schedule"], e["options"], e["kwargs"]) for e in schedule.values()] == [
        (2, {"expires": 2}, {"at_most_every": 2}),
        (60, {"expires": 60}, {"at_most_every": 60}),
    ]


def test_second_scheduler_does_not_flush_in_between(article):
    tasks.flush_hits(at_most_every=60)
    record_hit(article)
    tasks.flush_hits(at_most_every=60)
    assert slot_sums([article]) == {article: 3}

    tasks.flush_hits()
    assert slot_sums([article]) == {article: 4}


def test_schedule_that_is_a_bit_early_is_not_left_out(article):
    with mock.patch.object(Throttle, "admit", autospec=True) as admit:
        tasks.flush_hits(at_most_every=60)
        tasks.compact_hits(at_most_every=600)

    throttles = [call.args[0] for call in admit.call_args_list]
    assert [(throttle.name, throttle.seconds) for throttle in throttles] == [
        ("django_hitcount.flush_hits", 54),
        ("django_hitcount.compact_hits", 540),
    ]


def test_compaction_needs_no_redis(article, monkeypatch):
    def away(self):
        raise BufferUnavailable("Redis is away")

    tasks.flush_hits()
    monkeypatch.setattr(Throttle, "admit", away)
    tasks.compact_hits(at_most_every=600)

    assert [*HitSlot.objects.values_list("slot", "hits")] == [(0, 3)]
