from __future__ import annotations

import csv
import datetime
import io
import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.utils.translation import override

from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_visitors
from django_hitcount.recording import record_hit
from django_hitcount.series import visitors_by_day
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


def ago(days: int) -> datetime.date:
    return day_of() - datetime.timedelta(days=days)


def with_days(query) -> dict[str, object]:
    """The parameters of an address, in which a number is a day so many days ago."""
    return {name: ago(value) if isinstance(value, int) else value for name, value in query.items()}


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
    flush_hits()
    record_hit(article)
    record_hit(article, counter="downloads")

    for days in (30, 90, 365):
        assert rows(admin.get(url_of(article), {"period": days})) == {
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


def test_visitors_that_nobody_counted_are_a_dash(rule, admin, article, text):
    rule(visitors=True)
    record_hit(article, amount=50, at=ago(3))
    unknown = admin.get(url_of(article))
    visit(article, [1, 2])
    known = admin.get(url_of(article))

    assert rows(unknown)["Views: visitors"] == ["0", "\u2013", "\u2013", "\u2013"]
    assert "nobody counted their visitors" in text(unknown)
    assert "Visitors per day" not in text(unknown)
    assert rows(known)["Views: visitors"] == ["2", "2", "2", "\u2013"]
    assert "nobody counted their visitors" not in text(known)
    assert "Visitors per day" in text(known)


def table(response) -> list[list[str]]:
    """The rows of a file."""
    text = response.getvalue().decode("utf-8-sig")
    return [*csv.reader(io.StringIO(text, newline=""))]


def test_days_are_a_file(rule, admin, article):
    rule(COUNTERS={"views": {"visitors": True}, "downloads": {}})
    visit(article, [1, 2, 2], at=ago(1))
    record_hit(article, amount=1204, at=ago(2))
    record_hit(article, amount=7, at=ago(4))
    flush_hits()
    visit(article, [1])

    address = {"first": str(ago(3)), "csv": "days"}
    response = admin.get(url_of(article), address)
    downloads = table(admin.get(url_of(article), {**address, "counter": "downloads"}))

    assert table(response) == [
        ["Day", "Hits", "Visitors"],
        [str(ago(3)), "0", "0"],
        [str(ago(2)), "1204", ""],
        [str(ago(1)), "3", "2"],
        [str(ago(0)), "1", "1"],
    ]
    assert downloads == [["Day", "Hits"], *([str(ago(days)), "0"] for days in (3, 2, 1, 0))]
    name = f"hits-days-app-article-{article.pk}-views-{ago(3)}-{ago(0)}.csv"
    assert response["Content-Disposition"] == f'attachment; filename="{name}"'
    assert response["Content-Type"] == "text/csv; charset=utf-8"


def test_the_page_links_the_file_with_its_days(admin, article):
    record_hit(article)
    html = admin.get(url_of(article), {"period": "7", "counter": "views"}).content.decode()
    (address,) = re.findall(r'href="([^"]*csv=days)"', html)

    assert len(table(admin.get(url_of(article) + unescape(address)))) == 1 + 7


def test_a_file_needs_the_permission_for_the_object(allow, article):
    client = allow("view_page", "view_hitslot")

    assert client.get(url_of(article), {"csv": "days"}).status_code == 403


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
    flush_hits()
    if is_forgotten:
        redis.flushall()
    visit(article, [6])

    for counter in NAMES:
        page = admin.get(url_of(article), {"counter": counter, "period": days})
        bars = page.context["statistics"]["visitors_chart"].bars
        each_day = visitors_by_day(article, days=days, counter=counter)
        assert {bar.first_day: bar.hits for bar in bars} == each_day
        counted = [get_visitors(article, days=length, counter=counter) for length in (1, 7, 30)]
        assert rows(page)[f"{counter.title()}: visitors"] == [*map(str, counted), "\u2013"]


@pytest.mark.parametrize(
    ("query", "hits", "label"),
    [
        ({}, "1 hit", "Views per day"),
        ({"period": "7"}, "0 hits", ""),
        ({"period": "90"}, "4 hits", "Views per day"),
        ({"period": "365"}, "9 hits", "Views per week"),
        ({"first": 89, "last": 89}, "3 hits", "Views per day"),
        ({"first": 4000, "last": 3990}, "20 hits", "Views per day"),
        ({"first": 365, "period": "7"}, "1,009 hits", "Views per week"),
        ({"counter": "downloads"}, "7 hits", "Downloads per day"),
    ],
)
def test_the_address_chooses_days_and_counter(buffer, admin, article, text, query, hits, label):
    for days_ago, amount in ((29, 1), (89, 3), (364, 5), (365, 1000), (3995, 20)):
        record_hit(article, amount=amount, at=ago(days_ago))
    record_hit(article, amount=7, counter="downloads")

    page = admin.get(url_of(article), with_days(query))

    assert f" {hits} from " in text(page)
    assert label in text(page)
    assert 'class="warning"' not in page.content.decode()
    assert rows(page)["Views"] == ["0", "0", "1", "1,029"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"period": "x"}, "Period: Select a valid choice. x is not one of"),
        ({"period": "31"}, "Period: Select a valid choice. 31 is not one of"),
        ({"first": "2026-02-30"}, "From: Enter a valid date."),
        ({"last": "2026-02-20"}, "To: Give the first day (From), too."),
        ({"first": 1, "last": 2}, "To: Choose 1 to 1,830 days."),
        ({"counter": "likes"}, "Counter: Select a valid choice. likes is not one of"),
        ({"csv": "top"}, "Csv: Select a valid choice. top is not one of"),
    ],
)
def test_what_an_address_says_wrongly_is_named(admin, article, text, query, problem):
    page = admin.get(url_of(article), with_days(query))

    assert problem in text(page)
    assert page.content.decode().count('class="warning"') == 1


def test_other_days_are_chosen_by_the_form_and_keep_the_counter(admin, article):
    html = admin.get(url_of(article), {"counter": "downloads", "period": "7"}).content.decode()

    assert '<a href="?period=7&amp;counter=downloads" aria-current="page">7 days</a>' in html
    assert '<input type="hidden" name="counter" value="downloads">' in html
    assert f'name="first" value="{ago(6)}"' not in html  # A named period moves with the days.
    chosen = {"first": str(ago(9)), "last": str(ago(3))}
    html = admin.get(url_of(article), chosen).content.decode()
    assert f'name="first" value="{ago(9)}"' in html
    assert f'<a href="?first={ago(9)}&amp;last={ago(3)}&amp;counter=downloads">' in html


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

    assert "Choose other days above" in text(admin.get(url_of(article)))
    assert "Choose other days above" not in text(admin.get(url_of(article), {"period": "90"}))


def test_hits_that_cancel_each_other_out_are_drawn(admin, article):
    record_hit(article, amount=5)
    record_hit(article, amount=-5, at=day_of() - datetime.timedelta(days=1))
    html = admin.get(url_of(article)).content.decode()

    assert html.count('class="hitcount-front"') == 30
    assert "hit_count object" not in html


@pytest.mark.parametrize("visitors", [False, True])
@pytest.mark.parametrize("number", [1, 5])
@pytest.mark.parametrize("query", [{}, {"period": "365"}, {"first": 400, "last": 380}])
def test_more_counters_cost_no_more_queries(
    buffer, admin, article, settings, number, visitors, query, django_assert_num_queries
):
    names = ["views", *(f"counter{n}" for n in range(number - 1))]
    counters = {name: {"visitors": visitors} for name in names}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    visit(article, [1])
    flush_hits()
    admin.get(url_of(article))
    queries = 2 + 1 + 1 + 1 + visitors  # Session and user, the object, corrections; hits.
    round_trips = 1 + 1 + visitors  # Totals; hits.

    with (
        sends() as sent,
        django_assert_num_queries(queries if buffer.keeps_hits else queries + 1),
    ):
        admin.get(url_of(article), with_days(query))
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
        html = admin.get(url_of(article), {"period": "365"}).content.decode()

    assert "?period=365&amp;counter=views" in html
    assert "1,204" not in html or language == "ja"
