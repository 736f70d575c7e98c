from __future__ import annotations

import datetime
import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.utils.translation import override

from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of, last_days
from django_hitcount.maintenance.flushing import flush
from django_hitcount.recording import record_hit
from django_hitcount.series import visitors_by_day
from django_hitcount.unique_visitors import visitors_between
from tests.app.models import Article, Featured, Page, Review
from tests.redis_server import sends
from tests.visiting import request_of, visit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


NAMES = ["views", "downloads"]


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


def url_of(obj) -> str:
    return f"/staff/app/{obj._meta.model_name}/{obj.pk}/statistics/"


def rows(response) -> dict[str, list[str]]:
    """The table of counters."""
    html = response.content.decode()
    (table,) = re.findall(r'aria-labelledby="hitcount-counters">(.*?)</table>', html, re.DOTALL)
    found = re.findall(r'<tr><th scope="row".*?>(.*?)</th>(.*?)</tr>', table, re.DOTALL)
    return {
        re.sub("<.*?>", "", label): re.findall(r"<td.*?>(.*?)</td>", cells)
        for label, cells in found
    }


def test_all_counters_with_their_ranges_and_totals(buffer, admin, article):
    today = day_of()
    for days_ago, amount in ((0, 1), (6, 20), (7, 300), (29, 4000), (30, 50_000)):
        record_hit(article, amount=amount, at=today - datetime.timedelta(days=days_ago))
    flush()
    record_hit(article)
    record_hit(article, counter="downloads")

    for days in (30, 90, 365):
        assert rows(admin.get(url_of(article), {"days": days})) == {
            "Views": ["2", "22", "4,322", "54,322"],
            "Downloads": ["1", "1", "1", "1"],
        }


def test_visitors_are_shown_where_they_are_counted(rule, admin, article, text):
    rule(visitors=True, COUNTERS={"views": {"visitors": True}, "downloads": {}})
    visit(article, [1, 2, 2])
    page = admin.get(url_of(article))

    assert rows(page)["Views: visitors"] == ["2", "2", "2", "\u2013"]
    assert "Visitors per day" in text(page)
    assert re.findall(r"Day (Hits|Visitors) ", text(page)) == ["Hits", "Visitors"]
    assert "Visitors per day" not in text(admin.get(url_of(article), {"counter": "downloads"}))


@pytest.mark.parametrize("rotation", ["day", "never"])
@pytest.mark.parametrize("days", [30, 90])
@pytest.mark.parametrize("is_forgotten", [False, True])
def test_each_counter_has_visitors_of_its_own(
    redis, rule, admin, article, rotation, days, is_forgotten
):
    rule(COUNTERS={name: {"visitors": True} for name in NAMES}, VISITOR_KEY_ROTATION=rotation)
    today = day_of()
    for days_ago in (0, 5, 20, 40):
        day = today - datetime.timedelta(days=days_ago)
        visit(article, range(5), at=day)
        article.record_hit(request_of(days_ago), counter="downloads", at=day)
    flush()
    if is_forgotten:
        redis.flushall()
    visit(article, [6])

    for counter in NAMES:
        page = admin.get(url_of(article), {"counter": counter, "days": days})
        bars = page.context["statistics"].visitors_chart.bars
        each_day = visitors_by_day(article, *last_days(days), counter=counter)
        assert {bar.first_day: bar.hits for bar in bars} == each_day
        counted = [
            visitors_between(article, *last_days(length), counter=counter) for length in (1, 7, 30)
        ]
        assert rows(page)[f"{counter.title()}: visitors"] == [*map(str, counted), "\u2013"]


@pytest.mark.parametrize(
    ("query", "hits", "label"),
    [
        ({}, "1 hit", "Views per day"),
        ({"days": "90"}, "4 hits", "Views per day"),
        ({"days": "365"}, "9 hits", "Views per week"),
        ({"days": "31"}, "1 hit", "Views per day"),
        ({"days": "x"}, "1 hit", "Views per day"),
        ({"counter": "downloads"}, "7 hits", "Downloads per day"),
        ({"counter": "likes"}, "1 hit", "Views per day"),
    ],
)
def test_the_address_chooses_days_and_counter(admin, article, text, query, hits, label):
    today = day_of()
    for days_ago, amount in ((29, 1), (89, 3), (364, 5), (365, 1000)):
        record_hit(article, amount=amount, at=today - datetime.timedelta(days=days_ago))
    record_hit(article, amount=7, counter="downloads")

    words = text(admin.get(url_of(article), query))

    assert f" {hits} from " in words
    assert label in words


def test_the_chart_has_each_day(admin, article):
    record_hit(article, amount=1204)

    html = admin.get(url_of(article)).content.decode()

    assert html.count('class="hitcount-front"') == 30
    assert "<strong>1,204</strong>" in html


def test_without_hits_it_says_how_to_record_them(admin, article, text):
    page = admin.get(url_of(article))
    downloads = admin.get(url_of(article), {"counter": "downloads"})

    assert "hitcount-bars" not in page.content.decode()
    assert "{% load hitcount %} {% hit_count object %}" in text(page)
    assert '{% hit_count object counter="downloads" %}' in unescape(text(downloads))


def test_without_hits_in_the_chosen_days_it_says_what_to_choose(admin, article, text):
    record_hit(article, at=day_of() - datetime.timedelta(days=60))

    assert "Choose more days above" in text(admin.get(url_of(article)))
    assert "Choose more days above" not in text(admin.get(url_of(article), {"days": "90"}))


def test_hits_that_cancel_each_other_out_are_drawn(admin, article):
    record_hit(article, amount=5)
    record_hit(article, amount=-5, at=day_of() - datetime.timedelta(days=1))
    html = admin.get(url_of(article)).content.decode()

    assert html.count('class="hitcount-front"') == 30
    assert "hit_count object" not in html


def test_hits_that_are_older_than_any_period(admin, article, text):
    record_hit(article, at=day_of() - datetime.timedelta(days=400))

    assert "Choose more days above" in text(admin.get(url_of(article), {"days": "90"}))
    assert "All hits are older." in text(admin.get(url_of(article), {"days": "365"}))


@pytest.mark.parametrize("visitors", [False, True])
@pytest.mark.parametrize("number", [1, 5])
def test_more_counters_cost_no_more_queries(
    buffer, admin, article, settings, number, visitors, django_assert_num_queries
):
    names = ["views", *(f"counter{n}" for n in range(number - 1))]
    counters = {name: {"visitors": visitors} for name in names}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    visit(article, [1])
    flush()
    admin.get(url_of(article))
    queries = 2 + 1 + 2 + visitors  # Session and user, the object, corrections and hits.
    round_trips = 2 + visitors  # Hits and totals.

    with (
        sends() as sent,
        django_assert_num_queries(queries if buffer.keeps_hits else queries + 1),
    ):
        admin.get(url_of(article))
    assert sent() == (round_trips if buffer.keeps_hits else 0)


@pytest.mark.parametrize("cls", [Article, Review, Featured])
def test_children_and_proxies_show_the_same_hits(admin, cls):
    obj = cls.objects.create(title="Tea")
    record_hit(Article.objects.get(pk=obj.pk), amount=5)
    correct_hits(obj, 3, day=day_of(), reason="Lost", user=User.objects.get())

    page = admin.get(url_of(obj))

    assert rows(page)["Views"] == ["8"] * 4
    assert "Lost" in page.content.decode()


def test_a_page_leads_back_to_the_object_in_its_own_site(admin, article):
    html = admin.get(url_of(article)).content.decode()

    crumbs = re.findall(r'<a href="(/[^"]*)">', html.partition('class="breadcrumbs"')[2])
    change = f"/staff/app/article/{article.pk}/change/"
    assert crumbs[:4] == ["/staff/", "/staff/app/", "/staff/app/article/", change]


def test_no_link_of_an_object_is_broken_by_its_key(admin):
    page = Page.objects.create(path='/a:b/_%()"\nü')
    record_hit(page, amount=3)

    html = admin.get("/staff/app/page/").content.decode()
    (url,) = re.findall(r'class="hitcount-total" href="(.*?)"', html)
    response = admin.get(url)

    assert rows(response)["Views"] == ["3"] * 4


@pytest.mark.parametrize("model", ["article", "review"])
def test_the_form_of_an_object_has_a_link(admin, model):
    obj = {"article": Article, "review": Review}[model].objects.create(title="Tea")

    html = admin.get(f"/staff/app/{model}/{obj.pk}/change/").content.decode()

    assert f'<a href="{url_of(obj)}">Statistics</a>' in html
    assert ("A link of the project" in html) == (model == "review")
    assert "Statistics" not in admin.get(f"/staff/app/{model}/add/").content.decode()


def test_a_template_of_the_project_may_leave_the_link_out(admin):
    obj = Featured.objects.create(title="Tea")

    html = admin.get(f"/staff/app/featured/{obj.pk}/change/").content.decode()

    assert html.strip() == "A form of the project, with nothing of the admin."


def test_who_may_view_the_object_may_view_its_statistics(allow, article):
    assert allow("view_article").get(url_of(article)).status_code == 200


def test_others_get_a_refusal_or_the_login(client, allow, article):
    response = client.get(url_of(article))
    assert response.status_code == 302
    assert response["Location"].startswith("/staff/login/?next=/staff/app/article/")
    assert allow("view_page", "view_hitslot").get(url_of(article)).status_code == 403


@pytest.mark.parametrize("key", ["0", "x", "_5F"])
def test_an_object_that_does_not_exist(admin, key):
    response = admin.get(f"/staff/app/article/{key}/statistics/", follow=True)

    assert response.redirect_chain == [("/staff/", 302)]
    assert "exist. Perhaps" in response.content.decode()


@pytest.mark.parametrize("language", ["ar", "de", "fr", "ja"])
def test_other_languages(admin, article, settings, language):
    settings.LANGUAGE_CODE = language
    record_hit(article, amount=1204)

    with override(language):
        html = admin.get(url_of(article), {"days": "365"}).content.decode()

    assert "?counter=views&amp;days=365" in html
    assert "1,204" not in html or language == "ja"
