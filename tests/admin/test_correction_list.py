from __future__ import annotations

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from django_hitcount import models
from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.models import Correction
from tests.app.models import Article, Page, Photo

pytestmark = pytest.mark.django_db

CORRECTIONS = "/admin/django_hitcount/correction/"


def correct(obj, amount=3, **options):
    user = User.objects.get_or_create(username="ann")[0]
    arguments = {"day": day_of(), "reason": "A bot", "user": user, **options}
    return correct_hits(obj, amount, **arguments)


def test_corrections_say_who_when_and_why(admin, text):
    article = Article.objects.create()
    correct(article, 1204)
    correct(User.objects.create(username="eve"), reason="An import", counter="downloads")

    page = admin.get(CORRECTIONS)

    words = text(page)
    assert "Downloads" in words
    assert f"{article} Views" in words
    assert "+1,204 A bot ann" in words
    assert '/change/">eve</a>' in page.content.decode()


def test_without_corrections_it_says_how_they_are_made(admin, text):
    expected = "Hits are corrected on the page of statistics of their object"

    assert expected in text(admin.get(CORRECTIONS))
    correct(Article.objects.create())
    assert expected not in text(admin.get(CORRECTIONS))


def test_objects_that_are_gone_or_unknown_are_named_by_their_key(admin, text):
    row = {"counter": "views", "day": day_of(), "amount": -3, "reason": "x", "made_by": "ann"}
    gone = ContentType.objects.create(app_label="gone", model="thing")
    article = ContentType.objects.get_for_model(Article)
    photo = ContentType.objects.get_for_model(Photo)
    seat = ContentType.objects.get(app_label="app", model="seat")
    for content_type in (gone, article, photo, seat):
        Correction.objects.create(content_type=content_type, object_id="77", **row)

    words = text(admin.get(CORRECTIONS))

    for name in ("Thing 77", "Article 77", "Photo 77", "Seat 77"):
        assert name in words


@pytest.mark.parametrize("number", [1, 20])
def test_a_list_costs_a_query_per_model(admin, number, django_assert_num_queries):
    for n in range(number):
        correct(Article.objects.create(title=str(n)))
        correct(Page.objects.create(path=str(n)))
    admin.get(CORRECTIONS)
    queries = 2 + 4 + 1 + 2  # Session and user, two counts and two of days, corrections, objects.

    with django_assert_num_queries(queries):
        admin.get(CORRECTIONS)


def test_filters_and_search(admin, text):
    correct(Article.objects.create(), reason="Mine")
    correct(Article.objects.create(), counter="downloads", reason="Yours")

    def reasons(**query):
        words = text(admin.get(CORRECTIONS, query))
        return [reason for reason in ("Mine", "Yours") if reason in words]

    assert reasons() == ["Mine", "Yours"]
    assert reasons(counter="downloads") == ["Yours"]
    assert reasons(counter="views") == ["Mine"]
    assert reasons(q="mine") == ["Mine"]
    assert reasons(day__year="1999") == []


def test_one_counter_needs_no_filter(admin, settings, text):
    assert "By counter" in text(admin.get(CORRECTIONS))
    settings.HITCOUNT = {"COUNTERS": {}}
    assert "By counter" not in text(admin.get(CORRECTIONS))


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/", "1/history/", "1/"])
def test_a_correction_has_no_page_that_changes_it(admin, path):
    correct(User.objects.create(username="eve"))

    assert admin.get(CORRECTIONS + path).status_code == 404
    assert admin.post(CORRECTIONS + path, {"reason": "Another"}).status_code == 404
    assert "delete_selected" not in admin.get(CORRECTIONS).content.decode()


def test_who_may_see_them(allow, client):
    assert client.get(CORRECTIONS).status_code == 302
    assert allow("view_correction").get(CORRECTIONS).status_code == 200


def test_who_may_not_see_them(allow):
    assert allow("add_correction", "view_article").get(CORRECTIONS).status_code == 403


def test_no_other_table_is_in_the_admin():
    ours = {model for model in vars(models).values() if isinstance(model, type)}

    assert {model for model in django_admin.site._registry if model in ours} == {
        Correction,
        models.Counter,
        models.HitSlot,
    }


@pytest.mark.parametrize("year", ["0", "x", "9999", "9" * 12, "9" * 400])
def test_an_invalid_year_is_no_error(admin, year):
    response = admin.get(f"{CORRECTIONS}?day__year={year}", follow=True)

    assert response.status_code == 200


@pytest.mark.parametrize("column", ["counter", "object_id", "q"])
@pytest.mark.parametrize("value", ["%00", "nothing", "%ed%a0%80", "x" * 5000])
def test_a_filter_that_matches_nothing_is_no_error(admin, column, value):
    correct(Article.objects.create())

    page = admin.get(f"{CORRECTIONS}?{column}={value}", follow=True)

    assert page.status_code == 200
