"""Counts move while hits come in, and while flushes and compactions run and are killed."""

from __future__ import annotations

import datetime
import time

import pytest
from django.db import connection
from django.db.models import Sum

from django_hitcount import import_hits, moving, undo_import
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db import imports, slots
from django_hitcount.db.tables import DailyModelHits, ImportedHits
from django_hitcount.importing import Objects
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.moving import move_hits
from django_hitcount.reading import get_hits, get_visitors
from tests import children
from tests.app.models import Article, Page
from tests.concurrency.storm import compact_now_and_then, flush_all, flush_now_and_then
from tests.concurrency.victims import Victims
from tests.servers import wait_until
from tests.tables import daily_sums, slot_sums
from tests.visiting import visit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

EACH = 150
"""Hits that a writer records, each of a visitor of its own."""

WRITERS = 2

LATE = day_of() - datetime.timedelta(days=1)


@pytest.fixture
def objects(rule, hits_wait_for_all_locks) -> tuple[Article, Page]:
    rule("always", visitors=True)
    return Article.objects.create(), Page.objects.create(path="new")


def write(objects: tuple[Article, Page], number: int) -> None:
    """Count on the old object twice as often as on the new one."""
    old, new = objects
    for n in range(EACH):
        visit(new if n % 3 == 0 else old, [f"198.51.{number}.{n}"], at=LATE if n % 5 else None)


def move_now_and_then(objects: tuple[Article, Page]) -> None:
    old, new = objects
    move_hits(old, to=new)
    time.sleep(0.01)  # So that writers get their share of the machine.


def test_moving_meanwhile_loses_and_doubles_nothing(objects, redis):
    old, new = objects
    writers = [children.fork(lambda n=n: write(objects, n)) for n in range(WRITERS)]
    moving = [lambda: move_now_and_then(objects)] * 2
    victims = Victims([*moving, flush_now_and_then, compact_now_and_then])
    victims.start_all()
    while writers := [pid for pid in writers if not children.has_ended(pid)]:
        victims.kill_due()
        time.sleep(0.002)
    victims.kill_all()

    flush_all()
    assert get_hits(old) + get_hits(new) == EACH * WRITERS
    move_hits(old, to=new)
    flush_hits()
    compact_hits()

    assert (get_hits(old), get_hits(new)) == (0, EACH * WRITERS)
    assert slot_sums(objects) == daily_sums(objects) == {old: 0, new: EACH * WRITERS}
    sums = DailyModelHits.objects.values_list("content_type__model").annotate(Sum("hits"))
    assert {model: hits for model, hits in sums if hits} == {"page": EACH * WRITERS}
    if get_buffer().keeps_hits:
        redis.flushall()  # The table has all of them, too.
    assert get_visitors(old, days=2) == 0
    # With Redis, it is an estimate.
    assert abs(get_visitors(new, days=2) - EACH * WRITERS) <= 4 * get_buffer().keeps_hits


def test_undo_of_an_import_meanwhile_takes_each_hit_back_once(rule, monkeypatch):
    """The undo has read the imported rows when somebody tries to move them."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    rule("always")
    old, new = Article.objects.create(), Page.objects.create(path="new")
    import_hits(Objects([(old, LATE, 5)]), import_id="old")
    monkeypatch.setattr(moving, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(slots, "LOCK_WAIT_SECONDS", 0.2)
    add, codes = imports.add_rows, []

    def move_first(*args, **kwargs):
        if not codes:
            codes.append(children.run(lambda: move_hits(old, to=new)))
        add(*args, **kwargs)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(imports, "add_rows", move_first)
        assert undo_import("old") == 5
    assert codes == [1]  # It has met the locks of the undo.

    move_hits(old, to=new)
    assert slot_sums([old, new]) == daily_sums([old, new]) == {old: 0, new: 0}


WAITING = {
    # Not pg_stat_activity: within a transaction, it stays as it was when first looked at.
    "postgresql": "SELECT COUNT(*) FROM pg_locks WHERE NOT granted",
    "mysql": "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("DO SLEEP(0.2)")  # As in tests/sessions.py.
        cursor.execute(WAITING[connection.vendor])
        return cursor.fetchone()[0] > 0


def test_undo_that_waits_for_a_move_finds_what_that_has_moved(rule, monkeypatch):
    """It asks for all imported rows while the move has written them, before its COMMIT."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    rule("always")
    old, new = Article.objects.create(), Page.objects.create(path="new")
    import_hits(Objects([(old, LATE, 5)]), import_id="old")
    copy, undoing = moving._copy_hits, []

    def copy_while_an_undo_waits(model, *args):
        copy(model, *args)
        if model is ImportedHits and not undoing:
            undoing.append(children.fork(lambda: undo_import("old")))
            wait_until(somebody_waits, "an undo that waits")

    monkeypatch.setattr(moving, "_copy_hits", copy_while_an_undo_waits)
    move_hits(old, to=new)
    assert children.wait_for(undoing.pop()) == 0

    move_hits(old, to=new)
    assert slot_sums([old, new]) == daily_sums([old, new]) == {old: 0, new: 0}
