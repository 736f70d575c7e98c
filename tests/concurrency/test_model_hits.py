"""
A law: the rows of DailyModelHits are the sums of slot 0, and the hits of a model are those of all
rows, whoever records, folds, corrects and deletes hits, and is killed meanwhile.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from contextlib import suppress
from functools import partial

import pytest
from django.db.models import Sum

from django_hitcount import corrections
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits
from django_hitcount.exceptions import TooFewHits
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from django_hitcount.series import hits_by_day
from tests.app.models import Article, Photo
from tests.concurrency.board import Board
from tests.concurrency.victims import Victims
from tests.servers import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

MODELS = (Article, Photo)  # The keys are integers and UUIDs.
OBJECTS = 20
COUNTERS = ("views", "downloads")
TODAY = day_of()
DAYS = (TODAY - datetime.timedelta(days=1), TODAY)
ROUNDS = 3
KILLS = 20
"""In each round."""


def group(rows):
    """Sum up rows by model, counter and day."""
    return rows.values_list(*DailyModelHits.KEY).annotate(sum=Sum("hits")).order_by()


def sums_that_differ():
    """Compare DailyModelHits with slot 0. One statement reads both."""
    in_slot_0 = group(DailyHitSlot.objects.filter(slot=0))
    difference = Counter()
    kept = DailyModelHits.objects.values_list(*DailyModelHits.KEY, "hits")
    for *key, hits in kept.union(in_slot_0.annotate(sum=-Sum("hits")), all=True):
        difference[tuple(key)] += int(hits)
    return {key: hits for key, hits in difference.items() if hits}


def check_models():
    sums = {tuple(key): int(hits) for *key, hits in group(DailyHitSlot.objects)}
    for model in MODELS:
        for counter in COUNTERS:
            key = content_type_id_of(model), counter
            expected = {day: sums.get((*key, day), 0) for day in DAYS}
            assert (
                hits_by_day(model, first_day=DAYS[0], last_day=DAYS[1], counter=counter) == expected
            )


def test_hits_of_models_are_the_sums_of_all_rows(buffer, user, settings, monkeypatch):
    settings.HITCOUNT = {**settings.HITCOUNT, "PARTITIONS": 2}  # So that a flush is short.
    monkeypatch.setattr(corrections, "PATIENCE_SECONDS", 30)
    objs = [model.objects.create() for model in MODELS for _ in range(OBJECTS)]

    def choose():
        return random.choice(objs), random.choice(COUNTERS), random.choice(DAYS)

    def record():
        obj, counter, day = choose()
        record_hit(obj, counter=counter, at=day, amount=random.choice([-1, 1, 2, 3]))

    def correct():
        obj, counter, day = choose()
        amount = random.choice([-1, 1])
        with suppress(TooFewHits):
            correct_hits(obj, amount, counter=counter, day=day, reason="A test", user=user)

    def delete(model):
        """Delete an object, and create it again."""
        obj = random.choice([obj for obj in objs if isinstance(obj, model)])
        model.objects.filter(pk=obj.pk).delete()
        model.objects.bulk_create([obj], ignore_conflicts=True)

    works = [record, correct, flush_hits, compact, lambda: compact(piece_size=7)]
    works += [lambda model=model: delete(model) for model in MODELS]
    done = Board(1, len(works))

    def do(number):
        works[number]()
        done.add(0, number)

    victims = Victims([lambda number=number: do(number) for number in range(len(works))])

    def has_seen(rounds):
        """Whether each work was done, and processes were killed, as often as in so many rounds."""
        if victims.kills < KILLS * rounds:  # Then the processes may live until their work is done.
            victims.kill_due()
        assert sums_that_differ() == {}
        fewest = min(done.column(number) for number in range(len(works)))
        return victims.kills >= KILLS * rounds and fewest >= rounds

    for rounds in range(1, ROUNDS + 1):
        victims.start_all()
        wait_until(partial(has_seen, rounds), "the end of a round")
        victims.kill_all()
        flush_hits()
        assert sums_that_differ() == {}
        check_models()
