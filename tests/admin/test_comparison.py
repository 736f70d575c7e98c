"""The statistics of an object beside those of another, both from their first day on."""

from __future__ import annotations

import datetime
import re
import uuid
from html import unescape

import pytest
import time_machine
from django.contrib.auth.models import User
from django.utils.formats import date_format

from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from tests.admin.sites import ArticleAdmin
from tests.app.models import Article, Page, Photo, Review
from tests.redis_server import sends
from tests.visiting import set_rule

DASH = "\u2013"

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.fixture(autouse=True)
def at_noon():
    with time_machine.travel("2026-11-22T12:00:00+00:00", tick=False):
        yield


def url_of(obj) -> str:
    return f"/staff/app/{obj._meta.model_name}/{obj.pk}/statistics/"


def ago(days: int) -> datetime.date:
    return day_of() - datetime.timedelta(days=days)


def record_days(obj, *hits: int, last: int = 0) -> None:
    """Record hits on days in a row. The last of them is so many days ago."""
    for number, amount in enumerate(hits):
        if amount:
            record_hit(obj, amount=amount, at=ago(last + len(hits) - 1 - number))


@pytest.fixture
def articles(buffer) -> list[Article]:
    """
    "Tea" had 9, 0 and 3 hits on its first days and 100 today. "Coffee" had 10 on each of its first
    40, which began much earlier.
    """
    coffee, tea = (Article.objects.create(title=title) for title in ("Coffee", "Tea"))
    record_days(coffee, *[10] * 40, last=60)
    flush_hits()
    record_days(tea, 9, 0, 3, 100)
    return [coffee, tea]


def section(response) -> str:
    html = response.content.decode()
    found = html.partition('id="hitcount-comparison">')[2].partition('id="hitcount-corrections"')
    return unescape(str(found[0]))


def words(response) -> str:
    return re.sub(r"(<[^>]*>|\s)+", " ", section(response))


def rows(response) -> dict[str, list[str]]:
    """The table, by the first days that a row is about."""
    table = section(response).partition('class="hitcount-table"')[2]
    found = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', table, re.DOTALL)
    cells = {label: re.sub("</?bdi>", "", row) for label, row in found}
    return {label: re.findall(r"<td.*?>(.*?)</td>", row) for label, row in cells.items()}


def test_both_are_counted_from_their_first_day(admin, articles):
    page = admin.get(url_of(articles[1]), {"beside": ""})

    assert rows(page) == {
        "First day": ["9", "10", "\u221210.0%"],
        "First 3 days": ["12", "30", "\u221260.0%"],
        "First 7 days": [DASH, "70", DASH],
        "First 30 days": [DASH, "300", DASH],
        "First 90 days": [DASH, "400", DASH],
    }
    names = [str(article) for article in articles]
    first_days = [date_format(ago(99)), date_format(ago(3))]
    assert f"“{names[1]}” from {first_days[1]}, “{names[0]}” from {first_days[0]}." in words(page)
    assert "The chart has the first 3 days, which both have had. Today is not over" in words(page)


def test_the_chart_has_both_by_the_number_of_the_day(admin, articles):
    html = section(admin.get(url_of(articles[1]), {"beside": ""}))
    table = html[html.index("<details>") : html.index("</details>")]
    text = re.sub(r"(<[^>]*>|\s)+", " ", table)

    assert f"Day {articles[1]} {articles[0]} Day 1 9 10 Day 2 0 10 Day 3 3 10" in text
    assert re.findall(r'text-anchor="middle">(.*?)<', html) == ["1", "2", "3"]
    assert html.count('class="hitcount-front"') == html.count('class="hitcount-behind"') == 3
    assert "period before" not in html


def test_a_first_day_alone(admin, buffer):
    coffee, tea = (Article.objects.create() for _ in range(2))
    record_days(coffee, 4, 5)
    record_days(tea, 6, 0)
    page = admin.get(url_of(tea), {"beside": ""})

    assert rows(page) == {"First day": ["6", "4", "+50.0%"]}
    assert "The chart has the first day. Today" in words(page)


def test_hits_that_were_all_taken_back_are_no_first_day(admin, articles):
    record_hit(articles[1], amount=-5, at=ago(30))
    record_hit(articles[1], amount=50, at=ago(20))
    correct_hits(articles[1], -50, day=ago(20), reason="A bot", user=User.objects.get())

    assert rows(admin.get(url_of(articles[1]), {"beside": ""}))["First day"][0] == "9"


def test_what_has_had_no_whole_day_is_said(admin, articles):
    today, never = (Article.objects.create() for _ in range(2))
    record_hit(today)
    page = admin.get(url_of(today), {"beside": articles[1].pk})

    assert f"“{today}” had its first hits today. Compare it when a whole day" in words(page)
    assert rows(page)["First day"] == [DASH, "9", DASH]
    assert "hitcount-chart" not in section(page)
    page = admin.get(url_of(never), {"beside": today.pk, "counter": "downloads"})
    assert f"“{never}” has no hits of “downloads” yet." in words(page)
    assert rows(page) == {}


def test_no_more_than_ninety_days_are_compared(admin, buffer):
    coffee, tea = (Article.objects.create() for _ in range(2))
    for article in (coffee, tea):
        record_days(article, *[1] * 95)
    page = admin.get(url_of(tea), {"beside": ""})

    assert rows(page)["First 90 days"] == ["90", "90", "0.0%"]
    assert section(page).count('class="hitcount-front"') == 90


# Which object


def test_without_being_asked_it_compares_nothing(admin, articles):
    page = admin.get(url_of(articles[1]))

    assert "Leave it empty for the one before." in words(page)
    assert rows(page) == {}


def test_the_one_before_is_the_nearest_with_hits(admin, articles):
    draft, new = (Article.objects.create() for _ in range(2))
    page = admin.get(url_of(new), {"beside": ""})

    assert f'<a href="{url_of(articles[1])}">{articles[1]}</a>' in section(page)
    assert f"“{draft}”" not in section(page)


def test_a_model_admin_may_have_another_order(admin, articles, monkeypatch):
    def by_title(self, request, obj):
        return self.get_queryset(request).filter(title__gt=obj.title).order_by("title")

    monkeypatch.setattr(ArticleAdmin, "objects_before", by_title)
    page = admin.get(url_of(articles[0]), {"beside": ""})

    assert f'<a href="{url_of(articles[1])}">' in section(page)


def test_the_one_before_may_be_viewed(admin, articles, hides):
    new = Article.objects.create()
    hides(articles[1])

    assert f'<a href="{url_of(articles[0])}">' in section(admin.get(url_of(new), {"beside": ""}))


def test_any_other_object_is_chosen_by_its_key(admin, articles):
    page = admin.get(url_of(articles[0]), {"beside": f" {articles[1].pk} "})

    assert rows(page)["First 3 days"] == ["30", "12", "+150.0%"]


@pytest.mark.parametrize("key", ["0", "x", "9" * 400, "-1", "1.5"])
def test_an_unknown_key_is_named(admin, articles, key):
    page = admin.get(url_of(articles[0]), {"beside": key})

    expected = f"There is no article with the primary key “{key}” that you may view."
    assert expected in words(page)
    assert rows(page) == {}


def test_a_key_of_a_child_that_is_too_large(admin, articles):
    """SQLite raises an error of Python for it."""
    child = Review.objects.create(title="Tea")
    page = admin.get(url_of(child), {"beside": str(2**63)})

    assert f"There is no review with the primary key “{2**63}”" in words(page)


def test_a_key_that_no_column_holds(admin, articles):
    assert "Null characters are not" in words(admin.get(url_of(articles[0]), {"beside": "1\0"}))


def test_an_object_that_may_not_be_viewed_is_as_if_unknown(admin, articles, hides):
    hides(articles[0])
    page = admin.get(url_of(articles[1]), {"beside": articles[0].pk})

    assert "that you may view" in words(page)
    assert str(articles[0]) not in section(page)


def test_the_same_object_and_none_before(admin, articles):
    page = admin.get(url_of(articles[0]), {"beside": articles[0].pk})
    assert "This is the same object. Enter the key of another one." in words(page)

    page = admin.get(url_of(articles[0]), {"beside": ""})
    assert "No object before this one has hits. Enter the primary key of" in words(page)


def test_keys_that_are_no_numbers_have_no_order(admin, buffer):
    first, second = (Photo.objects.create(pk=uuid.UUID(int=number)) for number in (1, 2))
    record_days(first, 4, 5)

    assert "No object before" in words(admin.get(url_of(second), {"beside": ""}))
    page = admin.get(url_of(second), {"beside": str(first.pk)})
    assert rows(page)["First day"] == [DASH, "4", DASH]


def test_an_object_whose_hits_cannot_be_counted(admin, buffer):
    _, long = (Page.objects.create(path=path) for path in ("/tea", "/" + "x" * 260))
    page = admin.get("/staff/app/page/_2Ftea/statistics/", {"beside": long.pk})

    assert "Use keys of up to 255 characters." in words(page)


def test_children_of_a_model_are_compared(admin, buffer):
    first, second = (Review.objects.create(title="Tea") for _ in range(2))
    record_days(first, 4, 5)

    assert rows(admin.get(url_of(second), {"beside": ""}))["First day"] == [DASH, "4", DASH]


def test_another_choice_keeps_the_comparison(admin, articles):
    query = {"beside": articles[0].pk, "period": "7", "counter": "views"}
    html = unescape(admin.get(url_of(articles[1]), query).content.decode())

    assert f'href="?period=30&counter=views&beside={articles[0].pk}"' in html
    assert f'href="?period=7&counter=downloads&beside={articles[0].pk}"' in html
    fields = re.findall(r'<form method="get".*?</form>', html, re.DOTALL)
    assert all('name="period" value="7"' in form for form in fields)
    assert len(fields) == 2


@pytest.mark.parametrize("more", [0, 30])
def test_it_costs_the_same_for_any_number_of_objects(
    buffer, admin, settings, more, django_assert_num_queries
):
    set_rule(settings)
    articles = [Article.objects.create() for _ in range(2 + more)]
    for article in articles:
        record_days(article, *[2] * 9)
    flush_hits()
    admin.get(url_of(articles[-1]), {"beside": ""})
    queries = 2 + 1 + 2  # Session and user, the object, hits and corrections.
    beside = 1 + 2  # The objects before, the hits of both.
    round_trips = 2 + 1 + 2  # Hits and totals of this object, totals of those before, hits of both.

    with (
        sends() as sent,
        django_assert_num_queries(queries + beside + (0 if buffer.keeps_hits else 2)),
    ):
        admin.get(url_of(articles[-1]), {"beside": ""})
    assert sent() == (round_trips if buffer.keeps_hits else 0)
