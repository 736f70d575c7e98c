"""DailyModelHits is the sum of slot 0 of DailyHitSlot, whatever folds or deletes rows."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from unittest import mock

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import OperationalError

from django_hitcount.counters.days import day_of
from django_hitcount.db import slots
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits
from django_hitcount.maintenance import compaction
from django_hitcount.maintenance.compaction import compact
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article, Page

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = day_of()
YESTERDAY = TODAY - datetime.timedelta(days=1)


@pytest.fixture
def articles() -> list[Article]:
    return [Article.objects.create(title=title) for title in ("Tea", "Cake", "Jam")]


def by_model() -> dict[tuple[int, str, datetime.date], int]:
    """What the table says, without sums that are 0."""
    rows = DailyModelHits.objects.values_list(*DailyModelHits.KEY, "hits")
    return {(model, name, day): hits for model, name, day, hits in rows if hits}


def in_slot_0() -> dict[tuple[int, str, datetime.date], int]:
    """What it should say."""
    sums: Counter[tuple[int, str, datetime.date]] = Counter()
    for model, name, day, hits in DailyHitSlot.objects.filter(slot=0).values_list(
        *DailyModelHits.KEY, "hits"
    ):
        sums[model, name, day] += hits
    return {key: hits for key, hits in sums.items() if hits}


def test_fold_adds_the_hits_of_all_objects(articles):
    record_hits(articles, amount=2, at=TODAY)
    record_hits(articles[:2], at=YESTERDAY)
    record_hit(articles[0], counter="downloads", amount=-5, at=TODAY)
    record_hit(Page.objects.create(path="a"), at=TODAY)
    assert by_model() == {}

    compact(piece_size=2)
    record_hits(articles, at=TODAY)
    compact()

    article, page = (ContentType.objects.get_for_model(model).pk for model in (Article, Page))
    assert by_model() == {
        (article, "views", TODAY): 9,
        (article, "views", YESTERDAY): 2,
        (article, "downloads", TODAY): -5,
        (page, "views", TODAY): 1,
    }
    assert by_model() == in_slot_0()


def test_deleted_objects_take_away_what_was_folded(articles):
    record_hits(articles, amount=7)
    compact()
    record_hits(articles)  # Not folded yet: the row does not have these.
    articles[0].delete()

    assert [*by_model().values()] == [14]
    Article.objects.all().delete()
    assert by_model() == in_slot_0() == {}


def test_fold_that_fails_adds_nothing(articles, monkeypatch):
    monkeypatch.setattr(compaction, "PATIENCE_SECONDS", 0)
    record_hits(articles)

    with (
        mock.patch.object(slots, "add_to_models", side_effect=OperationalError),
        pytest.raises(OperationalError),
    ):
        compact()

    assert by_model() == in_slot_0() == {}


def test_rows_are_written_last_and_in_order(articles):
    """So that two folds that wait for these few rows hold as little as possible, in one order."""
    written = []
    days = [TODAY - datetime.timedelta(days=n) for n in range(4)]
    for day in random.sample(days, len(days)):
        record_hits(articles, at=day)
        record_hit(articles[0], at=day, counter="downloads")

    def insert(model, columns, rows):
        written.extend(rows if model is DailyModelHits else ())

    with mock.patch.object(slots, "insert_or_add", insert):
        compact()

    assert len(written) == 8
    assert written == sorted(written)


def test_content_type_that_is_deleted_takes_its_rows_along(articles):
    record_hits(articles)
    compact()
    ContentType.objects.get_for_model(Article).delete()

    assert not DailyModelHits.objects.exists()
