from __future__ import annotations

import datetime
import re
from pathlib import Path
from unittest import mock

import pytest
from django.contrib.admin import site
from django.contrib.staticfiles import finders
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from django_hitcount import numbers
from django_hitcount.admin import columns
from django_hitcount.counters.days import day_of
from django_hitcount.db.expressions import HitsInTables
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from tests.admin.sites import ArticleAdmin
from tests.app.models import (
    Article,
    Dessert,
    Essay,
    Featured,
    Novel,
    Page,
    Photo,
    Plain,
    Reader,
    Recipe,
    RecipeHistory,
    Review,
    Small,
)
from tests.redis_server import sends

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

ARTICLES = "/staff/app/article/"


@pytest.fixture
def articles() -> list[Article]:
    return Article.objects.bulk_create(Article(title=f"Tea {n}") for n in range(3))


def test_totals_are_exact_while_hits_wait(buffer, admin, articles, cells):
    record_hits(articles[:2], amount=1200)
    flush_hits()
    record_hit(articles[0], amount=4)

    assert cells(admin.get(ARTICLES)) == ["0", "1,200", "1,204"]


def test_an_action_reads_no_hits(admin, articles):
    with mock.patch("django_hitcount.admin.fill_cells") as fill_cells:
        chosen = {"action": "delete_selected", "_selected_action": [obj.pk for obj in articles]}
        assert admin.post(ARTICLES, chosen).status_code == 200

    fill_cells.assert_not_called()


@pytest.mark.parametrize("number", [1, 40])
def test_a_list_costs_the_same_for_any_number_of_objects(
    buffer, admin, number, django_assert_num_queries
):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(number))
    record_hits(articles)
    flush_hits()
    admin.get(ARTICLES)
    queries = 2 + 1 + 2 + 1  # Session and user, authors, two counts, and the objects.

    with django_assert_num_queries(queries + (1 if buffer.keeps_hits else 2)):
        admin.get(ARTICLES)


def test_a_line_shows_thirty_days_with_today(admin, articles):
    today = day_of()
    record_hit(articles[0], amount=7, at=today - datetime.timedelta(days=29))
    record_hit(articles[0], amount=100, at=today - datetime.timedelta(days=30))
    record_hit(articles[0], amount=2)

    html = admin.get(ARTICLES).content.decode()

    (title,) = re.findall(r"<title>(\d.*?)</title>", html)
    assert title.startswith("9 hits, ")
    assert html.count('class="hitcount-sparkline"') == 1


def test_the_list_has_the_style_sheet_that_hides_text(admin, articles):
    page = admin.get(ARTICLES).content.decode()
    sheets = re.findall(r'<link href="/static/(django_hitcount/[^"]+)"', page)

    assert '<span class="hitcount-hidden"> hits: show statistics</span>' in page
    assert [sheet for sheet in sheets if ".hitcount-hidden {" in read_sheet(sheet)] == [
        "django_hitcount/charts.css"
    ]


def read_sheet(path):
    return Path(str(finders.find(path))).read_text()


@pytest.mark.parametrize(("order", "expected"), [("3", ["0", "1", "2"]), ("-3", ["2", "1", "0"])])
def test_the_list_sorts_by_hits(buffer, admin, articles, cells, order, expected):
    record_hit(articles[1], amount=2)
    record_hit(articles[2])
    flush_hits()

    assert cells(admin.get(ARTICLES, {"o": order})) == expected


def test_sorting_works_with_search_filters_and_actions(admin, articles, cells):
    record_hit(articles[1], amount=2)

    assert cells(admin.get(ARTICLES, {"o": "-3", "q": "Tea", "author": ""})) == ["2", "0", "0"]
    chosen = {"action": "delete_selected", "_selected_action": [articles[1].pk], "post": "yes"}
    assert admin.post(f"{ARTICLES}?o=-3", chosen).status_code == 302
    assert cells(admin.get(ARTICLES)) == ["0", "0"]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Small.objects.create(), "small"),
        (lambda: Photo.objects.create(), "photo"),
        (lambda: Page.objects.create(path="/a:b/%()\nü"), "page"),
        (lambda: Plain.objects.create(name="x"), "plain"),
        (lambda: Essay.objects.create(live=True), "essay"),
    ],
    ids=["int", "uuid", "string", "without mixin", "read-only"],
)
def test_any_key_and_model(buffer, admin, cells, make, name):
    obj = make()
    record_hit(obj, amount=3)
    page = admin.get(f"/staff/app/{name}/", {"o": "-2"})

    assert cells(page) == ["3"]
    (url,) = re.findall(r'class="hitcount-total" href="(.*?)"', page.content.decode())
    assert admin.get(url).status_code == 200


def test_another_counter_names_the_column(admin, cells, text):
    novel = Novel.published.create()
    record_hit(novel, amount=2)
    record_hit(novel, amount=5, counter="downloads")

    page = admin.get("/staff/app/novel/")

    assert cells(page) == ["5"]
    assert "Downloads" in text(page)
    Article.objects.create(title="Tea")
    assert "Hits" in text(admin.get(ARTICLES))


def test_a_child_shows_the_hits_of_its_parent_and_other_mixins_work(admin, cells):
    reviews = [Review.objects.create(title=str(n), author="Ann") for n in range(3)]
    record_hits(reviews, amount=2)
    record_hit(Article.objects.get(pk=reviews[2].pk))

    page = admin.get("/staff/app/review/")

    assert cells(page) == ["3", "2", "2"]
    html = page.content.decode()
    assert html.count("Ann</td>") == 3
    assert "statistics" not in html, "the column links to the form, as list_display_links says"


def test_editable_lists_keep_their_hits(admin, cells):
    review = Review.objects.create(title="Tea", stars=5)
    record_hit(review)
    form = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-article_ptr": review.pk}

    failed = admin.post("/staff/app/review/", {**form, "form-0-stars": "x", "_save": "Save"})
    assert (failed.status_code, cells(failed)) == (200, ["1"])
    saved = admin.post("/staff/app/review/", {**form, "form-0-stars": "4", "_save": "Save"})
    assert saved.status_code == 302
    assert Review.objects.get().stars == 4


def test_a_list_that_shows_hits_gets_no_second_column(admin, cells, text):
    record_hit(Featured.objects.create(title="Tea"), amount=3)

    page = admin.get("/staff/app/featured/")

    assert cells(page) == []
    assert "3" in text(page)


@pytest.mark.parametrize("name", ["hits", "hit_count"])
def test_a_column_of_the_project_is_read_for_all_objects_at_once(
    buffer, admin, articles, monkeypatch, name, django_assert_num_queries
):
    def hit_count(obj):
        return obj.hits

    monkeypatch.setattr(ArticleAdmin, "list_display", ["title", name])
    monkeypatch.setattr(ArticleAdmin, "hit_count", staticmethod(hit_count), raising=False)
    record_hits(articles, amount=3)
    flush_hits()
    admin.get(ARTICLES)
    queries = 2 + 1 + 2 + 1  # Session and user, authors, two counts, and the objects.

    with sends() as sent, django_assert_num_queries(queries + (0 if buffer.keeps_hits else 1)):
        page = admin.get(ARTICLES)
    assert page.content.decode().count(f'<td class="field-{name}">3</td>') == 3
    assert sent() == (1 if buffer.keeps_hits else 0)


def test_the_column_may_be_anywhere(admin, cells):
    record_hit(Reader.objects.create(username="ann"), amount=3)

    page = admin.get("/staff/app/reader/")

    assert cells(page) == ["3"]
    assert "statistics" not in page.content.decode(), "the first column links to the form"


def test_the_column_may_be_a_field_of_the_form(admin, cells):
    reader = Reader.objects.create(username="ann")
    record_hit(reader, amount=3)

    assert cells(admin.get(f"/staff/app/reader/{reader.pk}/change/")) == ["3"]


def test_a_popup_has_no_links_to_statistics(admin, articles, cells):
    page = admin.get(ARTICLES, {"_popup": "1"})

    assert cells(page) == ["0", "0", "0"]
    assert "statistics" not in page.content.decode()


@pytest.mark.parametrize("cls", [Recipe, Dessert])
def test_a_column_of_the_model_sorts_the_list(admin, cells, cls):
    """The list shows exact totals, whatever the column says."""
    first, second = cls.objects.create(), cls.objects.create()
    record_hit(first, amount=5)
    Recipe.objects.filter(pk=second.pk).update(views=9)
    url = f"/staff/app/{cls._meta.model_name}/"

    with CaptureQueriesContext(connection) as queries:
        assert cells(admin.get(url, {"o": "-2"})) == ["0", "5"]

    (listing,) = [q["sql"] for q in queries if "ORDER BY" in q["sql"] and "recipe" in q["sql"]]
    assert "hitslot" not in listing


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_counts_in_another_database_are_shown_but_not_sorted(admin, articles, cells, settings):
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    record_hit(articles[1], amount=3)

    page = admin.get(ARTICLES, {"o": "-3"})

    assert cells(page) == ["0", "3", "0"]
    assert not re.search(r'class="[^"]*sortable[^"]*column-hits_column', page.content.decode())
    settings.DATABASE_ROUTERS = []
    page = admin.get(ARTICLES)
    assert re.search(r'class="[^"]*sortable[^"]*column-hits_column', page.content.decode())


@pytest.mark.parametrize("name", ["read_numbers", "read_days_of_each", "counter_key"])
def test_the_list_stays_when_the_counts_are_away(admin, articles, name):
    def fail(*args, **kwargs):
        raise OperationalError("away")

    with mock.patch.object(columns, name, return_value={}) as replaced:
        if name != "read_numbers":
            replaced.side_effect = fail
        page = admin.get(ARTICLES)

    assert page.status_code == 200
    assert "Tea 2" in page.content.decode()


def test_a_total_that_cannot_be_read_is_a_dash(admin, articles, cells):
    with mock.patch.object(columns, "read_numbers", return_value={}):
        assert cells(admin.get(ARTICLES)) == ["\u2013"] * 3


def test_lines_wait_no_longer_than_a_page(admin, articles):
    """While the breaker of page reads is open, no query is sent."""
    guard = mock.Mock(guard=mock.Mock(side_effect=BufferUnavailable))

    with mock.patch.object(numbers, "page_read_breaker", return_value=guard):
        assert admin.get(ARTICLES).status_code == 200


def test_the_list_sorts_by_a_total_column_only_if_that_is_written():
    """The one that a history app copied stays 0."""

    def order_of(model):
        return ArticleAdmin(model, site).hits_column.admin_order_field

    assert order_of(Dessert) == "views"
    assert isinstance(order_of(RecipeHistory), HitsInTables)
