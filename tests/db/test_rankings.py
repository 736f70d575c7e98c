"""How much of the tables a ranking reads."""

from __future__ import annotations

import pytest
import time_machine

from django_hitcount.counters.rankings import Ranking, Scope, weigh_days
from django_hitcount.db import ranking_selects, rankings
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.rankings import rank_these, read_rankings
from django_hitcount.db.slots import CORRECTION_SLOT
from tests.app.models import Article
from tests.ranked import NOON, add_daily, add_totals, day

# Without savepoints, which are queries, too.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def articles():
    return Article.objects.bulk_create(Article(title=str(n)) for n in range(60))


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Read as few rows at first as a test of few objects needs to see more read."""
    monkeypatch.setattr(rankings, "FEWEST_ROWS", 4)
    with time_machine.travel(NOON, tick=False):
        yield


def scope(days=None):
    weights = weigh_days([day(ago) for ago in reversed(range(days))]) if days else None
    pk = content_type_id_of(Article)
    return Scope(content_type_ids=[pk], counter="views", weights=weights)


def key_of(article):
    return content_type_id_of(Article), str(article.pk)


def hits(ranking):
    return [key.hits for key in ranking.keys]


def read_all(days=None, at_least=1):
    return [*read_rankings(scope(days), at_least=at_least)]


def test_popular_objects_are_certain_at_once(articles, django_assert_num_queries):
    add_totals({(article, 0): 10_000 // (n + 1) for n, article in enumerate(articles)})
    scope()

    with django_assert_num_queries(1):
        first = next(read_rankings(scope(), at_least=1))
    assert hits(first) == [10_000, 5000, 3333]
    assert not first.is_complete


def test_each_ranking_is_longer_and_the_last_is_complete(articles):
    add_totals({(article, 0): 1000 - n for n, article in enumerate(articles)})

    found = read_all()
    assert [len(ranking.keys) for ranking in found] == [3, 15, 60]
    assert [ranking.is_complete for ranking in found] == [False, False, True]


def test_a_large_limit_reads_more_at_first(articles):
    add_totals({(article, 0): 1000 - n for n, article in enumerate(articles)})

    assert [len(ranking.keys) for ranking in read_all(at_least=10)] == [19, 60]


def test_equal_objects_are_summed_up_in_the_table_at_last(articles, monkeypatch):
    monkeypatch.setattr(rankings, "MOST_ROWS", 16)
    add_totals({(article, 0): 7 for article in articles})

    found = read_all()
    assert [len(ranking.keys) for ranking in found] == [0, 0, 60]
    texts = [key.object_key[1] for key in found[-1].keys]
    assert texts == sorted(str(article.pk) for article in articles)


def test_many_lists_are_summed_up_earlier(articles, monkeypatch):
    monkeypatch.setattr(rankings, "MOST_ROWS_OF_ALL_LISTS", 40)
    add_daily({(article, 0, 0): 1000 - n for n, article in enumerate(articles)})

    assert [len(ranking.keys) for ranking in read_all(days=5)] == [3, 16, 60]


def test_rows_that_are_not_compacted_raise_the_bound_by_their_number(articles):
    """Another one may have three such rows and a correction: 4 x 10 hits."""
    add_totals({(articles[n], 0): 100 - 20 * n for n in range(4)})
    add_totals({(articles[10 + n], 3): 10 for n in range(5)})

    first = next(read_rankings(scope(), at_least=1))
    assert hits(first) == [100]  # 80 is not above 40 + 40.


def test_correction_raises_the_bound_by_one_row(articles):
    """Its slot is the highest of all, but nobody has hits in all the slots below."""
    add_totals({(articles[n], 0): 100 - 20 * n for n in range(4)})
    add_totals({(articles[10 + n], 1): 10 for n in range(5)})
    add_totals({(articles[0], CORRECTION_SLOT): 7})

    first = next(read_rankings(scope(), at_least=1))
    assert hits(first) == [107, 80]  # 60 is not above 40 + 2 x 10.


def test_rows_that_are_not_compacted_are_summed_up_if_they_prove_too_little(articles):
    add_totals({(articles[n], 0): 100 - 20 * n for n in range(5)})
    add_totals({(articles[10 + n], slot): 10 for n in range(5) for slot in range(1, 5)})

    first, second = read_all()
    assert hits(first) == [100]
    assert hits(second) == [100, 80, 60] + 6 * [40] + [20]


def test_rows_of_days_that_are_not_compacted_are_summed_up_at_once(articles):
    """Many have a hit of today, so none has much: their number is no bound."""
    add_daily({(articles[n], 0, 0): 30 - 5 * n for n in range(5)})
    add_daily({(article, 1 + n % 50, 0): 1 for n, article in enumerate(articles)})

    first = next(read_rankings(scope(days=1), at_least=1))
    assert hits(first) == [31, 26, 21]  # 16 is not above 15 + 1.


def test_many_rows_of_days_that_are_not_compacted_are_summed_up_later(articles, monkeypatch):
    for module in (rankings, ranking_selects):
        monkeypatch.setattr(module, "FEW_UNCOMPACTED", 59)
    add_daily({(articles[n], 0, 0): 300 - 50 * n for n in range(5)})
    add_daily({(article, 1 + n % 49, 0): 1 for n, article in enumerate(articles)})

    first, second, *_ = read_all(days=1)
    assert hits(first) == [301, 251, 201]  # 151 is not above 150 + 50 x 1.
    assert hits(second) == [301, 251, 201, 151, 101]


def test_a_table_has_objects_without_hits_left(articles, monkeypatch):
    monkeypatch.setattr(rankings, "MOST_ROWS", 0)
    add_totals({(article, 0): 2 - n for n, article in enumerate(articles)})

    (found,) = read_all()
    assert found.keys == [(key_of(articles[0]), 2, 0), (key_of(articles[1]), 1, 0)]
    assert found.is_complete


def test_an_object_in_no_head_may_be_the_first(articles):
    """On each day, four objects have more hits than it has."""
    rows = {(articles[5 * n + ago], 0, ago): 50 - n for n in range(4) for ago in range(5)}
    rows |= {(articles[50], 0, ago): 20 for ago in range(5)}
    add_daily(rows)

    first, second = read_all(days=5)
    assert hits(first) == []
    assert not first.is_complete
    assert hits(second) == [100] + [50] * 5 + [49] * 5 + [48] * 5 + [47] * 5


def test_empty_tables_have_a_complete_ranking(articles):
    assert read_all() == read_all(days=3) == [Ranking([], is_complete=True, others=[])]


@pytest.mark.parametrize("days", [None, 2])
def test_these_are_read_by_their_keys(articles, days, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(rankings, "IDS_PER_STATEMENT", 2)
    totals = {(articles[n], slot): n - 1 for n in range(5) for slot in range(2)}
    add_totals(totals)
    add_daily({(*of, ago): amount for of, amount in totals.items() for ago in range(2)})
    wanted = [str(article.pk) for article in articles[:4]]
    of = scope(days)

    with django_assert_num_queries(2):
        found = rank_these(of, wanted)
    assert [key.hits for key in found] == [4 * (days or 1), 2 * (days or 1)]
