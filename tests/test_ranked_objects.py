"""How many queries it takes to find the objects of a ranking."""

from __future__ import annotations

import pytest

from django_hitcount import rankings
from django_hitcount.counters.rankings import Scope
from django_hitcount.db import rankings as db_rankings
from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.rankings import rank_queryset
from tests.app.models import Article
from tests.ranked import add_totals

# Without savepoints, which are queries, too.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def articles(monkeypatch):
    """Articles with 100, 50, 33 ... hits."""
    monkeypatch.setattr(db_rankings, "FEWEST_ROWS", 4)
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(40))
    add_totals({(article, 0): 1000 // (n + 1) for n, article in enumerate(articles)})
    return articles


@pytest.fixture
def scope():
    return Scope(content_type_ids=[content_type_id_of(Article)], counter="views")


def titles(queryset, scope, limit=2):
    return [int(obj.title) for _, obj in rank_queryset(queryset, scope, limit=limit)]


def test_all_objects_cost_two_queries(scope, django_assert_num_queries):
    with django_assert_num_queries(2):
        assert titles(Article.objects.all(), scope) == [0, 1]


def test_a_deleted_object_costs_one_more(scope, articles, django_assert_num_queries):
    """Its hits may still be in the tables."""
    Article.objects.filter(pk=articles[0].pk)._raw_delete("default")

    with django_assert_num_queries(3):
        assert titles(Article.objects.all(), scope) == [1, 2]


def test_few_objects_are_ranked_alone(scope, django_assert_num_queries):
    few = Article.objects.filter(title__in=["30", "20", "39"])

    # The ranking, its two chunks of objects, all three keys, their hits, and the objects.
    with django_assert_num_queries(6):
        assert titles(few, scope) == [20, 30]


def test_many_objects_are_found_further_down(scope, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(rankings, "FEW", 5)
    later = Article.objects.filter(pk__gt=Article.objects.order_by("pk")[9].pk)

    # The ranking and two chunks of it, six keys, a longer ranking and a chunk of objects that are
    # not known yet.
    with django_assert_num_queries(7):
        assert titles(later, scope) == [10, 11]


def test_keys_are_looked_up_once_and_in_limited_numbers(scope, monkeypatch):
    monkeypatch.setattr(rankings, "FEW", 0)
    monkeypatch.setattr(rankings, "LARGEST_CHUNK", 3)
    looked_up = []
    look_up = rankings.filter_by_texts
    monkeypatch.setattr(
        rankings,
        "filter_by_texts",
        lambda queryset, texts: [looked_up.append([*texts]), look_up(queryset, texts)][1],
    )

    assert titles(Article.objects.filter(title__in=["38", "39"]), scope) == [38, 39]
    assert max(map(len, looked_up)) == 3
    pks = Article.objects.order_by("pk").values_list("pk", flat=True)
    assert sorted(int(text) for texts in looked_up for text in texts) == [*pks]
