"""hit_count_object(): an object says that its hits are those of another one."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.utils.functional import SimpleLazyObject

from django_hitcount import (
    beacon_token,
    get_visitors,
    move_hits,
    popular,
    prefetch_hits,
    record_hits,
)
from django_hitcount.beacon import read_token
from django_hitcount.db.expressions import HitCountSum
from django_hitcount.db.tables import HitSlot
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import Counter, with_hits, with_visitors
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.app.models import Article, Photo, Translation
from tests.visiting import request_of, visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(rule) -> Article:
    rule("daily", visitors=True)
    return Article.objects.create(title="original")


@pytest.fixture
def translation(article) -> Translation:
    return Translation.objects.create(article=article)


def test_all_that_records_counts_on_the_other_object(article, translation):
    assert record_hit(translation).total == 1
    assert translation.record_hit().total == 2
    assert record_hit(SimpleLazyObject(lambda: translation)).total == 3
    assert [hit.total for hit in record_hits([translation, article])] == [5, 5]
    tag = Template("{% load hitcount %}{% hit_count obj %} {% hits obj %} {% visitors obj %}")
    context = {"obj": translation, "request": request_of(1)}
    assert tag.render(Context(context)) == "6 6 1"
    flush_hits()
    assert {*HitSlot.objects.values_list("object_id", flat=True)} == {str(article.pk)}
    assert HitSlot.objects.values("content_type").distinct().count() == 1


def test_a_visitor_of_both_counts_once(article, translation):
    visit(article, [1, 2])
    visit(translation, [2, 3])
    assert get_hits(article) == get_visitors(translation) == 3


def test_all_that_reads_reads_those_of_the_other(article, translation):
    visit(article, [1, 2])
    flush_hits()
    visit(article, [3])
    translation = Translation.objects.get()
    assert translation.hits == get_hits(translation, days=1) == 3
    assert get_hits([translation]) == {translation: 3}
    assert translation.hits_by_day(days=1) == article.hits_by_day(days=1)
    prefetch_hits([translation])
    assert translation.hits == 3
    (found,) = with_visitors(with_hits(Translation.objects.all()))
    assert (found.hits, found.visitors) == (3, 3)
    (found,) = with_hits(Translation.objects.all(), name="views")
    assert found.views == 3


def test_sql_has_the_key_of_the_object_itself(article, translation):
    record_hit(translation)
    flush_hits()
    compact_hits()
    assert [*popular(Article, 5)] == [article]
    assert [*popular(Translation, 5)] == []
    (row,) = Translation.objects.annotate(total=HitCountSum("article"))
    assert row.total == 1


def test_token_is_that_of_the_other(article, translation):
    assert beacon_token(translation) == beacon_token(article)
    token = read_token(beacon_token(translation, show="visitors"))
    assert token
    assert (token.model, token.object_id) == (Article, str(article.pk))


def test_hits_may_be_those_of_a_named_counter(translation, monkeypatch):
    monkeypatch.setattr(Translation, "hit_count_object", lambda self: Counter("all"))
    assert record_hit(translation).total == 1
    assert get_hits(Counter("all")) == 1
    assert [*Counter.objects.all()] == [Counter("all")]


def test_object_may_count_for_itself(article):
    own = Translation.objects.create()
    assert record_hit(own).total == 1
    assert (get_hits(own), get_hits(article)) == (1, 0)


def test_deletion_of_a_translation_deletes_no_counts_of_the_other(article, translation):
    record_hit(translation)
    translation.delete()
    flush_hits()
    compact_hits()
    assert get_hits(article) == 1


def test_hits_from_before_the_method_are_moved(article, translation, monkeypatch):
    with monkeypatch.context() as before:
        before.delattr(Translation, "hit_count_object")
        visit(translation, [1, 2])
    visit(article, [3])
    assert get_hits(translation) == 1

    move_hits(translation, to=article)

    assert get_hits(article) == get_hits(translation) == 3
    with pytest.raises(InvalidArgument, match="are the same"):
        move_hits(article, to=translation)


def test_preview_is_no_hit(article):
    preview = Translation(article=article)
    with pytest.raises(UnsavedObject):
        record_hit(preview)
    tag = Template("{% load hitcount %}{% hit_count obj %}")
    assert tag.render(Context({"obj": preview, "request": request_of(1)})) == ""
    assert get_hits(article) == 0


@pytest.mark.parametrize("wrong", [None, 5, Article, Article()], ids=repr)
@pytest.mark.parametrize("call", [record_hit, get_hits, beacon_token])
def test_wrong_return_is_an_error(translation, monkeypatch, wrong, call):
    monkeypatch.setattr(Translation, "hit_count_object", lambda self: wrong)
    with pytest.raises(InvalidArgument, match="Return a saved object"):
        call(translation)


def test_chain_is_an_error(translation, monkeypatch):
    photo = Photo.objects.create()
    chain = {Translation: translation.article, Article: photo}
    method = lambda self: chain[type(self)]  # noqa: E731
    monkeypatch.setattr(Translation, "hit_count_object", method)
    monkeypatch.setattr(Article, "hit_count_object", method, raising=False)
    with pytest.raises(InvalidArgument, match="Return the last of them at once"):
        record_hit(translation)
    chain[Article] = Article.objects.get()
    assert record_hit(translation).total == 1


def test_method_that_fails_later_does_not_break_the_page(article, translation, monkeypatch):
    """It may need a query each time. Recording a hit calls it once, before the hit is counted."""
    answers = [article]
    monkeypatch.setattr(Translation, "hit_count_object", lambda self: answers.pop())

    assert record_hit(translation).total == 1
