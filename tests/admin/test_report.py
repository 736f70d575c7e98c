"""The report of all hits."""

from __future__ import annotations

import csv
import datetime
import html
import io
import re

import pytest
import time_machine
from django.contrib.contenttypes.models import ContentType
from django.test import RequestFactory, TestCase
from django.urls import reverse

from django_hitcount.admin.report import FILES
from django_hitcount.db.tables import RefusedHitSlot
from django_hitcount.maintenance.compaction import compact
from django_hitcount.models import HitSlot
from django_hitcount.recording import record_hit
from django_hitcount.reports.selection import PERIODS
from tests.app.models import Article, OldPhoto, Page, Photo, Plain, Tag

URL = "/admin/django_hitcount/hitslot/"
STAFF_URL = "/staff/django_hitcount/hitslot/"
TODAY = datetime.date(2026, 11, 22)


@pytest.fixture(autouse=True)
def on_a_sunday():
    with time_machine.travel("2026-11-22T12:00:00+00:00", tick=False):
        yield


def record(obj, hits, days_ago=1, *, request=None, **options):
    """Record hits as if the transaction of the test were committed."""
    at = TODAY - datetime.timedelta(days=days_ago)
    with TestCase.captureOnCommitCallbacks(execute=True):
        record_hit(obj, request, amount=hits, at=at, **options)


def make(model, hits, days_ago=1, **fields):
    obj = model.objects.create(**fields)
    record(obj, hits, days_ago)
    return obj


def table(response):
    """The rows of a CSV file."""
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    return [*csv.reader(io.StringIO(text, newline=""))]


def visit(user_agent="Mozilla/5.0 (X11; Linux x86_64) Chrome/143.0", *, method="GET"):
    """A request that shows a page."""
    return RequestFactory().generic(method, "/", headers={"User-Agent": user_agent})


# Who may see it


def test_anonymous_users_are_sent_to_the_login(client, db):
    response = client.get(URL)

    assert response.status_code == 302
    assert response.url == f"/admin/login/?next={URL}"


def test_staff_without_the_permission_get_403(allow):
    client = allow("view_article", "view_dailyhitslot")

    assert client.get(URL).status_code == 403
    assert client.get(f"{URL}?csv=top").status_code == 403
    assert URL not in client.get("/admin/").content.decode()


def test_the_permission_to_view_slots_is_enough(allow):
    client = allow("view_hitslot")

    assert client.get(URL).status_code == 200
    assert f'href="{URL}"' in client.get("/admin/").content.decode()


@pytest.mark.parametrize("path", ["add/", "1/change/", "1/delete/", "1/history/", "1/"])
def test_slots_have_no_pages(admin, path):
    assert admin.get(URL + path).status_code == 404
    assert admin.post(URL + path).status_code == 404


def test_nothing_can_be_posted_to_the_report(admin, db):
    make(Article, 1)
    admin.post(URL, {"action": "delete_selected", "_selected_action": [HitSlot.objects.get().pk]})

    assert HitSlot.objects.exists()


def test_another_site_of_the_admin_may_have_it(admin):
    page = admin.get(STAFF_URL).content.decode()

    assert 'href="/staff/django_hitcount/"' in page
    assert 'href="/admin/' not in page


# What it shows


def test_totals_are_beside_those_of_the_period_before(admin, text):
    article = make(Article, 300)
    record(article, 1000, 30)
    record(article, 1000, 31)
    record(article, 7, 61)

    assert "Hits 1,300 +30.0% compared with 1,000 in the previous 30 days" in text(admin.get(URL))


def test_without_hits_before_there_is_no_change(admin, text):
    make(Article, 3)

    page = text(admin.get(f"{URL}?period=yesterday"))
    assert "Hits 3 no hits on the previous day" in page
    assert "The period before" not in page
    assert "Rising" not in page


def test_a_number_of_days_has_separators(admin, text):
    article = make(Article, 1)
    address = f"{URL}?first=2022-11-21&last=2026-11-21"

    assert "no hits in the previous 1,462 days" in text(admin.get(address))
    record(article, 1, 1463)
    assert "compared with 1 in the previous 1,462 days" in text(admin.get(address))


def test_hits_count_before_and_after_compaction(admin, text):
    article = make(Article, 3)
    before = text(admin.get(URL))
    compact()
    record(article, 2)

    assert "Hits 3 " in before
    assert "Hits 5 " in text(admin.get(URL))


def test_top_objects_have_their_share(admin):
    tea = make(Article, 30)
    make(Page, 10, path="/coffee & cake/")
    make(Article, 99, days_ago=30)
    page = admin.get(f"{URL}?period=7").content.decode()
    top = page[page.index('id="top-heading"') : page.index('id="refused-heading"')]

    assert re.findall(r'<th scope="row">(.*?)</th>', top) == [
        str(tea),
        "Page object (/coffee &amp; cake/)",
    ]
    assert re.findall(r">([\d.]+%)<", top) == ["75.0%", "25.0%"]


def test_titles_are_escaped(admin):
    make(Page, 30, path="<script>alert(1)</script>")

    assert "<script>alert" not in admin.get(URL).content.decode()


@pytest.mark.parametrize(
    ("model", "permission", "page"),
    [
        (Article, "view_article", "hit_statistics"),
        (Article, "change_article", "hit_statistics"),
        (Tag, "view_tag", "change"),
        (Article, "add_article", None),
        (OldPhoto, "view_oldphoto", None),  # This site does not have it.
    ],
)
def test_objects_are_linked_for_those_who_may_view_them(allow, model, permission, page):
    obj = make(model, 1)
    page_html = allow("view_hitslot", permission).get(STAFF_URL).content.decode()

    links = re.findall(r'<th scope="row"><a href="([^"]*)"', page_html)
    if page is None:
        assert links == []
        return
    name = f"admin:app_{model._meta.model_name}_{page}"
    address = reverse(name, args=[obj.pk], current_app="staff")
    assert [link.partition("?")[0] for link in links] == [address]


@pytest.mark.parametrize(
    ("period", "days", "hits"),
    [
        ("period=today", "first=2026-11-22&last=2026-11-22", 2),
        ("period=7", "first=2026-11-15&last=2026-11-21", 1),
        ("first=2026-10-01&last=2026-11-21", "first=2026-10-01&last=2026-11-21", 1),
    ],
)
def test_links_keep_the_counter_and_the_days(admin, text, period, days, hits):
    """So that the page of the object has the number of the row that was followed."""
    article = make(Article, 1)
    record(article, 1, counter="downloads")
    record(article, 2, days_ago=0, counter="downloads")
    page = admin.get(f"{STAFF_URL}?counter=downloads&{period}").content.decode()
    link = html.unescape(re.findall(r'<th scope="row"><a href="([^"]*)"', page)[0])

    assert link.endswith(f"/statistics/?counter=downloads&{days}")
    assert re.search(rf" {hits} hits? from (Nov|Oct)", text(admin.get(link)))
    assert "Downloads per" in text(admin.get(link))


def test_keys_of_any_characters_are_linked(admin):
    page = make(Page, 1, path="/a_b/ü?.#%")
    (link,) = re.findall(
        r'<th scope="row"><a href="([^"]*)"', admin.get(STAFF_URL).content.decode()
    )

    assert page.path in admin.get(link).content.decode()


def test_deleted_objects_are_named_after_their_key(admin, text):
    article = make(Article, 5)
    Article.objects.filter(pk=article.pk)._raw_delete("default")

    assert f" 1 {article.pk} article 5 100.0%" in text(admin.get(URL))


def test_models_that_are_gone_do_not_break_it(admin, text):
    make(Article, 5)
    gone = ContentType.objects.create(app_label="gone", model="thing")
    HitSlot.objects.create(content_type=gone, object_id="1", counter="views", slot=0, hits=9)

    assert "Hits 5 " in text(admin.get(URL))


def test_visitors_are_shown_if_they_are_counted(admin, text, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    article = Article.objects.create()
    for _ in range(3):
        record(article, 1, request=visit())
    page = text(admin.get(URL))

    assert f"Visitors 1 {article} article 3 100.0% 1 A visitor who came on several days" in page
    assert table(admin.get(f"{URL}?csv=top"))[1][4:7] == ["3", "100.0", "1"]
    assert "To see visitors, choose fewer days." in text(admin.get(f"{URL}?period=365"))


def test_visitors_that_nobody_counted_are_not_zero(admin, text, settings):
    """As of imported hits."""
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
    article = make(Article, 5)

    page = text(admin.get(URL))
    assert f"{article} article 5 100.0% \N{EN DASH} A dash in place of visitors" in page
    assert table(admin.get(f"{URL}?csv=top"))[1][4:7] == ["5", "100.0", ""]


def test_without_visitors_it_says_which_setting_counts_them(admin, text):
    make(Article, 1)
    expected = 'set HITCOUNT = {"COUNTERS": {"views": {"visitors": True}}}.'

    assert expected in html.unescape(text(admin.get(URL)))


def test_refused_hits_are_shown_by_reason(admin, text):
    article = make(Article, 1)
    for _ in range(3):
        record(article, 1, request=visit(method="HEAD"))
    record(article, 1, request=visit("curl"))
    record(article, 1, request=visit("curl"), counter="downloads")
    page = text(admin.get(URL))

    assert "Refused hits 4 80.0% of all hits, counted or refused" in page
    assert "The request is not a GET, so it does not show a page. method 3 75.0%" in page
    assert "The user agent is that of a bot, or empty. bot 1 25.0%" in page
    assert "Refused hits 4 of all models together" in text(admin.get(f"{URL}?model=app.article"))


def test_the_chart_has_the_hits_of_each_day(admin):
    article = make(Article, 3)
    record(article, 2, 2)
    record(article, 5, 8)
    values = re.findall(
        r"<strong>([\d,]+)</strong>(?: <span>before: (\d+))?",
        admin.get(f"{URL}?period=7").content.decode(),
    )

    assert values[-2:] == [("2", "0"), ("3", "5")]
    assert len(values) == 7


# What it is about


def test_a_model_and_a_counter_can_be_chosen(admin, text):
    article = make(Article, 3)
    page = make(Page, 4, path="/cake/")
    record(article, 5, counter="downloads")

    assert "Hits 7 " in text(admin.get(URL))
    assert "Hits 3 " in text(admin.get(f"{URL}?model=app.article"))
    assert "Hits 5 " in text(admin.get(f"{URL}?counter=downloads"))
    assert str(page) in text(admin.get(URL))
    assert str(page) not in text(admin.get(f"{URL}?model=app.article"))


def test_refused_hits_of_reasons_that_are_gone_are_shown_by_name(admin, text):
    for refusal, hits in (("repeat", 3), ("old", 4), ("method", 3)):
        RefusedHitSlot.objects.create(
            day=TODAY - datetime.timedelta(days=1),
            counter="views",
            refusal=refusal,
            slot=0,
            hits=hits,
        )
    rows = table(admin.get(f"{URL}?csv=refused"))[1:]

    assert [(row[0], *row[2:]) for row in rows] == [
        ("old", "4", "40.0"),
        ("method", "3", "30.0"),
        ("repeat", "3", "30.0"),
    ]
    assert [bool(row[1]) for row in rows] == [False, True, True]


def test_models_with_hits_can_be_chosen(admin):
    make(Article, 1)
    Page.objects.create(path="/cake/")

    assert re.findall(r'<option value="(app[^"]*)"', admin.get(URL).content.decode()) == [
        "app.article"
    ]


def test_links_to_other_periods_keep_model_and_counter(admin):
    record(make(Article, 1), 1, counter="downloads")
    page = admin.get(f"{URL}?first=2026-11-01&last=2026-11-21&counter=downloads&model=app.article")
    links = re.findall(r'<li><a href="\?([^"]*)"', page.content.decode())

    assert [html.unescape(link) for link in links] == [
        f"counter=downloads&model=app.article&period={name}" for name in PERIODS
    ]


def test_the_form_shows_what_was_chosen(admin):
    make(Article, 1)
    named = admin.get(f"{URL}?period=90&model=app.article").content.decode()
    chosen = admin.get(f"{URL}?first=2026-11-01&last=2026-11-21").content.decode()

    assert '<input type="hidden" name="period" value="90">' in named
    assert '<option value="app.article" selected>' in named
    assert '<input type="date" name="first" id="id_first">' in named
    assert 'name="period"' not in chosen
    assert '<input type="date" name="first" value="2026-11-01"' in chosen
    assert '<input type="date" name="last" value="2026-11-21"' in chosen


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("period=8", "Period: Select a valid choice. 8 is not one of the available choices."),
        ("period=%00", "Period: Select a valid choice."),
        ("first=2026-02-30", "From: Enter a valid date."),
        ("last=2026-11-20", "To: Give the first day (From), too."),
        ("first=2026-11-20&last=2026-11-19", "To: Choose 1 to 1,830 days."),
        ("first=9999-12-01&last=9999-12-31", "From: This day is in the future."),
        ("first=0001-01-01&last=0001-01-01", "From: Ensure this value is greater than"),
        ("counter=x", "Counter: Select a valid choice. x is not one of the available choices."),
        ("model=app.page", "Model: Select a valid choice. app.page is not one of"),
        ("model='", "Model: Select a valid choice. ' is not one of the available choices."),
        ("csv=x", "Csv: Select a valid choice. x is not one of the available choices."),
    ],
)
def test_an_invalid_parameter_is_named_and_the_default_shown(admin, text, query, problem):
    make(Article, 3)
    response = admin.get(f"{URL}?{query}")

    assert response.status_code == 200
    assert problem in html.unescape(text(response))
    assert "Hits 3 " in text(response)


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("last=2026-11-20", "", "2026-11-20"),
        ("first=2026-11-20&last=2026-11-19", "2026-11-20", "2026-11-19"),
        ("first=2020-01-01&last=2026-11-20", "2020-01-01", "2026-11-20"),
        ("first=%22%3E&last=9999-12-31", "&quot;&gt;", "9999-12-31"),
    ],
)
def test_days_that_are_refused_stay_in_the_form(admin, query, first, last):
    page = admin.get(f"{URL}?{query}").content.decode()

    values = re.findall(r'<input type="date" name="\w+"(?: value="(.*?)")?', page)
    assert values == [first, last]


@pytest.mark.parametrize("last", ["2026-11-22", "2027-02-01", "9999-12-31"])
def test_days_that_are_not_over_are_left_out(admin, text, last):
    article = make(Article, 3)
    record(article, 2, days_ago=4)
    record(article, 9, days_ago=0)
    response = admin.get(f"{URL}?first=2026-11-19&last={last}")
    page = text(response)

    assert "Whole days from Nov. 19, 2026 to Nov. 21, 2026, compared with" in page
    assert "Hits 3 +50.0% compared with 2 in the previous 3 days" in page
    assert "Today so far 9 since midnight" in page
    assert 'name="last" value="2026-11-21"' in response.content.decode()


def test_days_without_hits_are_empty(admin, text):
    make(Article, 3)

    page = text(admin.get(f"{URL}?first=1999-12-01&last=1999-12-31"))
    assert "No hits in these days" in page
    assert "Choose other days, another counter or another model above." in page
    assert "hit_count" not in page


# What it says if there is nothing


def test_without_hits_it_says_how_to_record_them(admin, text):
    page = text(admin.get(URL))

    assert "No hits yet" in page
    assert "{% load hitcount %} {% hit_count object %}" in page
    assert "Most hits" not in page


def test_without_hits_in_these_days_it_leads_to_days_with_hits(admin, text):
    article = make(Article, 3, days_ago=400)
    record(article, 4, days_ago=500, counter="downloads")
    make(Page, 5, days_ago=300)
    compact()

    address = f"{URL}?model=app.article&counter="
    views, downloads = admin.get(f"{address}views"), admin.get(f"{address}downloads")
    (link,) = re.findall(r'<a href="(.*?)">Show the days up to', views.content.decode())

    assert "Show the days up to Oct. 18, 2025, which have hits." in text(views)
    assert "Show the days up to July 10, 2025, which have hits." in text(downloads)
    assert "Show the days up to Jan. 26, 2026, which have hits." in text(admin.get(URL))
    assert "Hits 3 no hits" in text(admin.get(URL + html.unescape(link)))


def test_days_in_the_future_are_not_those_with_hits(admin, text):
    make(Article, 3, days_ago=-1)
    compact()

    page = text(admin.get(URL))
    assert "No hits in these days" in page
    assert "Show the days up to" not in page


def test_it_says_how_to_record_hits_of_the_chosen_counter(admin, text):
    page = html.unescape(text(admin.get(f"{URL}?counter=downloads")))

    assert '{% hit_count object counter="downloads" %}' in page


def test_without_refused_hits_it_says_which_would_be(admin, text):
    make(Article, 1)

    assert "The settings of the site say which hits are" in html.unescape(text(admin.get(URL)))


def test_a_period_without_objects_says_why(admin, text):
    make(Article, 5, days_ago=31)

    assert "No object has hits in these days. Hits that were recorded" in text(admin.get(URL))


# CSV


def test_days_as_csv_are_those_of_the_page(admin):
    article = make(Article, 1204)
    record(article, 7, 8)
    rows = table(admin.get(f"{URL}?period=7&csv=days"))

    assert rows[0] == ["Day", "Hits", "Day of the period before", "Hits before"]
    assert rows[-2] == ["2026-11-20", "0", "2026-11-13", "0"]
    assert rows[-1] == ["2026-11-21", "1204", "2026-11-14", "7"]
    assert len(rows) == 8


def test_top_objects_as_csv_are_those_of_the_page(admin):
    article = make(Article, 3000)
    make(Page, 1000, path="=1+1")
    rows = table(admin.get(f"{URL}?csv=top"))

    assert rows == [
        [
            *["Rank", "Object", "Model", "Primary key", "Hits", "Share in percent", "Visitors"],
            *["Hits before", "Change"],
        ],
        ["1", str(article), "article", str(article.pk), "3000", "75.0", "", "0", "3000"],
        ["2", "Page object (=1+1)", "page", "'=1+1", "1000", "25.0", "", "0", "1000"],
    ]


def test_refused_hits_as_csv_are_those_of_the_page(admin):
    record(make(Article, 1), 1, request=visit("curl"))

    assert table(admin.get(f"{URL}?csv=refused"))[1:] == [
        ["bot", "The user agent is that of a bot, or empty.", "1", "100.0"]
    ]


def test_a_file_is_named_after_its_days(admin):
    make(Article, 1)

    for query in ("period=7&csv=top", "first=2026-11-15&last=2026-11-21&csv=top"):
        name = 'attachment; filename="hits-top-2026-11-15-2026-11-21.csv"'
        assert admin.get(f"{URL}?{query}")["Content-Disposition"] == name


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("counter=downloads", "downloads-"),
        ("model=app.article", "app-article-"),
        ("counter=downloads&model=app.article", "downloads-app-article-"),
        ("counter=%22&model=../..", ""),
    ],
)
def test_a_file_is_named_after_what_was_chosen(admin, query, chosen):
    make(Article, 1)

    name = f'attachment; filename="hits-days-{chosen}2026-11-22-2026-11-22.csv"'
    response = admin.get(f"{URL}?period=today&csv=days&{query}")
    assert response["Content-Disposition"] == name


def test_the_name_of_a_file_is_ascii(admin, monkeypatch):
    make(Article, 1)
    monkeypatch.setattr(Article._meta, "model_name", "artículo_文")

    name = 'attachment; filename="hits-days-app-articulo_-2026-11-22-2026-11-22.csv"'
    response = admin.get(f"{URL}?period=today&csv=days&model=app.artículo_文")
    assert response["Content-Disposition"] == name


def test_the_links_to_files_keep_what_was_chosen(admin):
    record(make(Article, 3), 1, request=visit("curl"))
    make(Article, 3, days_ago=8)
    page = admin.get(f"{URL}?period=7&model=app.article").content.decode()
    links = re.findall(r'class="hitcount-csv" href="([^"]*)"', page)

    assert [html.unescape(link) for link in links] == [
        f"?period=7&model=app.article&csv={name}" for name in FILES
    ]


def test_numbers_in_a_file_do_not_depend_on_the_language(admin, settings):
    settings.LANGUAGE_CODE = "de"
    make(Article, 3000)
    make(Article, 1000)

    assert table(admin.get(f"{URL}?csv=top"))[1][4:6] == ["3000", "75.0"]


# How it is made


@pytest.mark.django_db(transaction=True)
def test_objects_of_three_models_are_loaded(admin, text):
    made = [make(model, 10) for model in (Article, Photo, Plain, Tag)]
    page = text(admin.get(URL))

    assert sum(f" {obj} " in page for obj in made) == 3


def test_it_has_no_inline_style_or_script(admin):
    make(Article, 3)
    page = admin.get(URL).content.decode()
    ours = page[page.index('id="content-main"') : page.index("<footer")]

    assert not re.search(r"<script|<style|\sstyle=|\son\w+=|javascript:", ours)
    for sheet in ("charts", "report"):
        assert f'<link rel="stylesheet" href="/static/django_hitcount/{sheet}.css">' in page


@pytest.mark.parametrize(("language", "hits"), [("de", "1.204"), ("ar", "1204")])
def test_numbers_are_those_of_the_language(admin, settings, language, hits):
    settings.LANGUAGE_CODE = language
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    make(Article, 1204)
    page = admin.get(URL, headers={"Accept-Language": language}).content.decode()

    assert f'<dd class="hitcount-figure">{hits}</dd>' in page
    assert 'width="100.0%"' in page
