"""Each error about an argument names the value and the fix, and nothing is counted."""

from __future__ import annotations

import datetime
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy

from django_hitcount.counters.keys import InvalidKey
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.models import HitCountMixin, HitCountQuerySet, with_hits, with_visitors
from django_hitcount.page_numbers import page_number
from django_hitcount.reading import get_hits, get_visitors
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article, Page, Photo

pytestmark = pytest.mark.django_db(transaction=True)

TODAY = datetime.date(2026, 3, 1)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (record_hit, [None, None]),
        (record_hits, [[], None]),
        (partial(record_hit, once_per_request=True), [None, None]),
        (get_hits, [None]),
        (get_hits, [[]]),
        (page_number, [None, None]),
        (get_hits, [None, TODAY, TODAY]),
        (get_visitors, [None, TODAY]),
        (get_visitors, [None, TODAY, TODAY]),
        (get_visitors, [[], TODAY, TODAY]),
        (with_hits, [None]),
        (with_visitors, [None]),
        (HitCountQuerySet.with_hits, [None]),
        (HitCountQuerySet.with_visitors, [None]),
        (HitCountMixin.record_hit, [None, None]),
        (HitCountMixin.get_hits, [None, TODAY, TODAY]),
        (HitCountMixin.get_visitors, [None, TODAY]),
        (HitCountMixin.get_visitors, [None, TODAY, TODAY]),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_counter_without_its_name(function, arguments):
    with pytest.raises(TypeError, match="positional argument"):
        function(*arguments, "downloads")


def test_unknown_counter(article):
    with pytest.raises(InvalidArgument, match=r"'viewz'.*Declare it.*'viewz': \{\}"):
        record_hit(article, counter="viewz")
    with pytest.raises(InvalidArgument, match="'viewz'"):
        get_hits(article, counter="viewz")


@pytest.mark.parametrize(
    "counter", [["views"], None, 5, gettext_lazy("views"), SimpleLazyObject(lambda: "views")]
)
def test_counter_that_is_no_text(article, counter):
    for function in (record_hit, get_hits):
        with pytest.raises(InvalidArgument, match=r"Invalid counter: .*Pass its name as a str"):
            function(article, counter=counter)
    with pytest.raises(InvalidArgument, match=r"Invalid counter: .*Pass its name as a str"):
        get_visitors(article, first_day=TODAY, last_day=TODAY, counter=counter)


def test_counter_from_a_template(article):
    assert get_hits(article, counter=mark_safe("views")) == 0


@pytest.mark.parametrize("make", [lambda: Article(), lambda: Photo(), lambda: Article(pk=5)])
def test_unsaved_object(make):
    with pytest.raises(UnsavedObject, match=r"object.*Save the object first"):
        record_hit(make())


@pytest.mark.parametrize("value", [None, "", 5, Article])
def test_no_object(value):
    with pytest.raises(UnsavedObject, match="Pass a saved model instance"):
        record_hit(value)


def test_key_longer_than_the_column():
    page = Page.objects.create(path="x" * 256)

    with pytest.raises(InvalidKey, match=r"'xxx.*256 characters.*up to 255"):
        record_hit(page)


@pytest.mark.parametrize("path", ["a\0b", "a\ud800b"])
def test_key_that_no_column_holds(path):
    page = Page(path=path)
    page._state.adding = False

    with pytest.raises(InvalidKey, match="cannot be stored"):
        record_hit(page)


@pytest.mark.parametrize("amount", [0, 1.0, "1", None, True, 10**9 + 1, -(10**9) - 1])
def test_amount(article, amount):
    with pytest.raises(
        InvalidArgument, match=f"amount: {amount!r}.*whole number from .* other than 0"
    ):
        record_hit(article, amount=amount)


def test_day_beyond_the_calendar(article):
    with pytest.raises(InvalidArgument, match="Pass an earlier datetime"):
        record_hit(article, at=datetime.datetime(9999, 12, 31, 23, 59, tzinfo=datetime.UTC))


@pytest.mark.parametrize("at", ["2026-01-01", 5, datetime.time(1)])
def test_day(article, at):
    with pytest.raises(InvalidArgument, match="Pass a date or a datetime"):
        record_hit(article, at=at)


@pytest.mark.parametrize(
    ("first", "last"),
    [(TODAY, datetime.date(2026, 2, 28)), (datetime.date(1, 1, 1), TODAY), ("a", TODAY)],
)
def test_range_of_days(article, first, last):
    with pytest.raises(InvalidArgument):
        article.get_hits(first_day=first, last_day=last)


def test_one_bad_object_counts_none(buffer, article):
    with pytest.raises(InvalidArgument):
        record_hits([article, Article()])

    assert article.hits == 0


@pytest.mark.parametrize("refusals", [5, "", "bot", bool, [5], ["bot"], [None]])
def test_refusals_without_a_request(article, refusals):
    with pytest.raises(InvalidArgument, match=r"Invalid (item of )?refusals: .* Pass a"):
        record_hit(article, refusals=refusals)


@pytest.mark.parametrize("request_", ["downloads", User(username="eve")])
def test_something_else_in_place_of_a_request(article, request_):
    with pytest.raises(InvalidArgument, match=r"Invalid request: .* counter=.downloads."):
        record_hit(article, request_)

    assert article.hits == 0
