"""Two processes write the columns of HitCountField while hits come in: none keeps an old total."""

from __future__ import annotations

import time

import pytest

from django_hitcount.db.tables import StaleTotal
from django_hitcount.maintenance import column_writing
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Recipe
from tests.concurrency.board import Board

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

OBJECTS = 15
PAUSE_SECONDS = 0.1
"""Long enough for a fast process to compact and to write columns."""


def test_columns_are_the_totals_at_rest(buffer, settings, monkeypatch):
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 2}  # So that a flush is short.
    recipes = Recipe.objects.bulk_create(Recipe(title=str(n)) for n in range(OBJECTS))
    pauses, done = Board(1, 1), Board(1, 1)
    read = column_writing.read_sums

    def read_and_pause(*args, **kwargs):
        sums = read(*args, **kwargs)
        pauses.add(0, 0)
        time.sleep(PAUSE_SECONDS)
        return sums

    def refresh():
        while not done.total():
            compact_hits()

    def refresh_slowly():
        monkeypatch.setattr(column_writing, "read_sums", read_and_pause)
        refresh()

    def hit(recipe):
        record_hit(recipe)
        flush_hits()

    def record():
        """The last hit of each object comes while the slow process has the sums before it."""
        for recipe in recipes:
            before = pauses.total()
            while pauses.total() == before:
                hit(recipe)
            hit(recipe)

    writers = [children.fork(refresh), children.fork(refresh_slowly)]
    assert children.run(record) == 0
    done.add(0, 0)
    assert [children.wait_for(pid) for pid in writers] == [0, 0]

    compact_hits()
    assert not StaleTotal.objects.exists()
    assert {recipe: recipe.views for recipe in Recipe.objects.all()} == get_hits(recipes)
