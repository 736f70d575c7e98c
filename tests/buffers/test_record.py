"""What record() of each buffer answers: one result per hit, in the order of the hits."""

from __future__ import annotations

import datetime

import pytest

from django_hitcount.counters.hits import NewHits, VisitorHashes
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import RefusedHitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from tests.app.models import Article
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = datetime.date(2026, 3, 1)


@pytest.fixture
def articles():
    """More than there are partitions."""
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(40))


def hit_on(article, **options):
    return NewHits(counter_key(article, counter="views"), TODAY, **{"amount": 1, **options})


def visit_of(article):
    """The same visitor has another hash on each object."""
    hashed = article.pk.to_bytes(16)
    return hit_on(article, visitor=VisitorHashes("key", hashed, (hashed,)))


def test_amounts_and_refusals_are_those_of_each_hit(buffer, articles):
    for article in articles:
        get_hits(article)
    hits = [
        hit_on(article, amount=n, refusal="bot" if n % 3 == 0 else None)
        for n, article in enumerate(articles, start=1)
    ]
    results = buffer.record(hits)[0]

    assert [result.refusal for result in results] == [hit.refusal for hit in hits]
    if buffer.keeps_hits:
        assert [r.total for r in results] == [0 if h.refusal else h.amount for h in hits]


def test_repeats_are_found_in_their_places(rule, buffer, articles):
    rule("daily")
    first, second, *others = articles
    buffer.record([visit_of(first)])
    hits = [visit_of(article) for article in (second, first, *others, second)]

    assert [result.refusal for result in buffer.record(hits)[0]] == [
        None,
        "repeat",
        *[None] * len(others),
        "repeat",
    ]


@pytest.mark.parametrize("number", [1, 2, 39])
def test_hits_that_count_no_refusal_are_refused_in_silence(rule, buffer, articles, number):
    """That of ``one`` counts, in the same call."""
    rule("daily")
    one, *others = [visit_of(article) for article in articles]
    some = [hit._replace(counts_refusal=False) for hit in others[:number]]
    assert {result.refusal for result in buffer.record(some)[0]} == {None}
    assert {result.refusal for result in buffer.record(some)[0]} == {"repeat"}
    flush_hits()
    assert not RefusedHitSlot.objects.exists()

    buffer.record([one])
    assert {result.refusal for result in buffer.record([*some, one])[0]} == {"repeat"}
    flush_hits()
    assert [(row.refusal, row.hits) for row in RefusedHitSlot.objects.all()] == [("repeat", 1)]
    assert slot_sums(articles) == {article: int(n <= number) for n, article in enumerate(articles)}


def test_held_hits_are_there_if_the_total_is_not(redis_buffer, articles):
    known, unknown = articles[:2]
    get_hits(known)
    hits = [hit_on(known), hit_on(unknown), hit_on(known)]
    results, held_hits = redis_buffer.record(hits)

    assert [result.total for result in results] == [1, None, 2]
    key = hits[1].key
    assert [number.key for number in held_hits.keepable] == [key]
    assert [{**of_batch} for of_batch in held_hits.held.values()] == [{(key, hits[1].day): 1}, {}]
