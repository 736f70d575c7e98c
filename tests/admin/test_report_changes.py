"""What the report compares: days that are over, and which objects rise and fall between them."""

from __future__ import annotations

import datetime
import html
import re

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_hitcount.db.counter_keys import content_type_id_of
from django_hitcount.db.tables import DailyHitSlot, DailyModelHits, HitSlot
from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.outages import page_read_breaker
from tests.admin.test_report import TODAY, URL, make, record, table, visit
from tests.app.models import Article, Page, Photo, Plain, Tag
from tests.visiting import set_rule

ONE_IN_THE_MORNING = "2026-11-22T00:05:00+00:00"
"""In Berlin."""


@pytest.fixture(autouse=True)
def at_one_in_the_morning():
    with time_machine.travel(ONE_IN_THE_MORNING, tick=False):
        yield


def section(response, name):
    """The cells of a table of the page, row by row."""
    page = response.content.decode()
    start = page.index(f'id="{name}-heading"')
    body = page[page.index("<tbody>", start) : page.index("</tbody>", start)]
    return [
        [
            html.unescape(re.sub(r"<[^>]*>", "", cell))
            for cell in re.findall(r"<t[hd].*?</t[hd]>", row)
        ]
        for row in re.findall(r"<tr>.*?</tr>", body)
    ]


def day_before(ago):
    return TODAY - datetime.timedelta(days=ago)


def add_rows(model, hits_of, number, *days_ago):
    """Add compacted rows of many objects, which need not exist."""
    model_id = content_type_id_of(model)
    for ago in days_ago:
        DailyHitSlot.objects.bulk_create(
            DailyHitSlot(
                content_type_id=model_id,
                object_id=str(pk),
                counter="views",
                day=day_before(ago),
                slot=0,
                hits=hits_of(pk, ago),
            )
            for pk in range(1, number + 1)
        )
        hits = sum(hits_of(pk, ago) for pk in range(1, number + 1))
        DailyModelHits.objects.create(
            content_type_id=model_id, counter="views", day=day_before(ago), hits=hits
        )
    HitSlot.objects.create(content_type_id=model_id, object_id="1", counter="views", slot=0, hits=1)


# Days that are over


def test_a_running_day_is_no_slump(admin, text):
    article = make(Article, 79, days_ago=1)
    record(article, 79, days_ago=2)
    record(article, 2, days_ago=0)
    page = text(admin.get(f"{URL}?period=today"))

    assert "Hits so far 2 since midnight" in page
    assert "Nov. 22, 2026, so far. The day is not over, so it is not compared" in page
    assert "compared with 79" not in page
    assert "\u2212" not in page
    assert "-97" not in page
    assert "Rising" not in page


@pytest.mark.parametrize(
    ("period", "hits", "before"),
    [
        ("yesterday", "10", "10 on the previous day"),
        ("7", "70", "70 in the previous 7 days"),
        ("30", "300", "300 in the previous 30 days"),
        ("last-week", "70", "70 in the previous 7 days"),
        ("last-month", "310", "310 in the previous 31 days"),
        ("this-year", "3,250", "3,250 on the same days of last year"),
    ],
)
def test_periods_have_whole_days_and_today_is_apart(admin, text, period, hits, before):
    article = Article.objects.create()
    for ago in range(1, 700):
        add_day(article, 10, ago)
    record(article, 3, days_ago=0)
    response = admin.get(f"{URL}?period={period}")
    page = text(response)

    assert f"Hits {hits} 0.0% compared with {before}" in page
    assert "Today so far 3 since midnight, not in the other numbers" in page
    assert "Today is not over, so its hits are shown apart." in page
    assert "Nov. 22" not in page.replace("Nov. 22, 2025", "")
    days = table(admin.get(f"{URL}?period={period}&csv=days"))[1:]
    assert sum(int(row[1]) for row in days) == int(hits.replace(",", ""))
    assert {(row[1], row[3]) for row in days} == {("10", "10")}
    bars = re.findall(
        r"<strong>([\d,]+)</strong> <span>before: ([\d,]+)", response.content.decode()
    )
    assert sum(int(bar) for bar, _ in bars) == int(hits.replace(",", ""))


def add_day(obj, hits, ago):
    DailyHitSlot.objects.create(
        content_type_id=content_type_id_of(obj),
        object_id=str(obj.pk),
        counter="views",
        day=day_before(ago),
        slot=1,
        hits=hits,
    )


def test_last_month_says_what_it_is_compared_with(admin, text):
    make(Article, 1, days_ago=30)

    expected = (
        "Whole days from Oct. 1, 2026 to Oct. 31, 2026, "
        "compared with those from Aug. 31, 2026 to Sept. 30, 2026."
    )
    assert expected in text(admin.get(f"{URL}?period=last-month"))


def test_today_includes_what_waits_in_redis(admin, text, redis_buffer):
    article = make(Article, 5, days_ago=1)
    flush_hits()
    record(article, 2, days_ago=1)
    record(article, 3, days_ago=0)
    page = text(admin.get(URL))

    assert "Hits 7 no hits" in page
    assert "Today so far 3 " in page


def test_days_of_long_ago_are_shown_without_today(admin, text):
    record(make(Article, 3, days_ago=5000), 2, days_ago=0)
    day = day_before(5000)
    page = text(admin.get(f"{URL}?first={day}&last={day}"))

    assert "Hits 3 no hits on the previous day" in page
    assert "Today" not in page.replace("Today Yesterday 7 days", "")


def test_a_site_whose_first_hits_are_of_today_leads_to_them(admin, text):
    make(Article, 12, days_ago=0)
    response = admin.get(URL)
    (link,) = re.findall(
        r'<a href="([^"]*)">Show today, which has 12 hits so far', response.content.decode()
    )

    assert "No hits in these days" in text(response)
    assert "hit_count" not in text(response)
    assert "Hits so far 12 " in text(admin.get(URL + html.unescape(link)))


def test_before_the_first_hit_of_a_day_today_is_empty(admin, text):
    make(Article, 12, days_ago=1)
    compact()
    page = text(admin.get(f"{URL}?period=today"))

    assert "No hits today so far" in page
    assert "Show the days up to Nov. 21, 2026, which have hits." in page


# Which objects rise, and which fall


def test_an_object_that_falls_does_not_lead_those_that_rise(admin):
    """As the former "Trending now" did: its hits were as many and as new."""
    falling, rising, steady = (Article.objects.create() for _ in range(3))
    for obj, before, hits in ((falling, 305, 6), (rising, 1, 4), (steady, 9, 9)):
        record(obj, hits, days_ago=1)
        record(obj, before, days_ago=2)
    response = admin.get(f"{URL}?period=yesterday&model=app.article")

    assert section(response, "rising") == [[str(rising), "1", "4", "+3"]]
    assert section(response, "falling") == [[str(falling), "305", "6", "\u2212299"]]
    assert [row[1:4] for row in section(response, "top")] == [
        [str(steady), "9", "0 0.0%"],
        [str(falling), "6", "\u2212299 \u221298.0%"],
        [str(rising), "4", "+3 +300.0%"],
    ]


def test_an_object_without_hits_falls(admin):
    gone, stays = Article.objects.create(), make(Page, 5, path="/stays/")
    record(gone, 8, days_ago=40)
    response = admin.get(URL)

    assert section(response, "falling") == [[str(gone), "article", "8", "0", "\u22128"]]
    assert section(response, "rising") == [[str(stays), "page", "0", "5", "+5"]]


def test_files_of_changes_follow_the_period_that_names_them(admin):
    article = Article.objects.create()
    for hits, ago in ((1, 1), (2, 2), (50, 5), (70, 10)):
        record(article, hits, days_ago=ago)

    def changes(name, period):
        response = admin.get(f"{URL}?period={period}&csv={name}")
        assert f"hits-{name}-" in response["Content-Disposition"]
        return [row[4:] for row in table(response)[1:]]

    assert changes("falling", "yesterday") == [["1", "2", "-1"]]
    assert changes("falling", "7") == [["53", "70", "-17"]]
    assert changes("rising", "7") == []
    assert changes("rising", "30") == [["123", "0", "123"]]


def test_nothing_rises_without_hits_to_compare_with(admin, text):
    make(Article, 5)
    page = text(admin.get(URL))

    assert "Rising" not in page
    assert "Hits Change" not in page


def test_it_says_if_nothing_rises(admin, text):
    record(make(Article, 5), 6, days_ago=31)
    page = text(admin.get(URL))

    assert "Rising No object has more hits than in the days before." in page


RULE = "How many more hits than in the days before, the most first."
CAVEAT = "Only objects that were among the 100 most viewed of a day are compared here"


def test_it_states_the_rule_by_which_objects_rise(admin, text):
    add_rows(Article, lambda pk, ago: 100 + pk - ago, 99, 1, 31)
    page = text(admin.get(URL))

    assert RULE in page
    assert CAVEAT not in page


def test_it_says_if_some_objects_are_not_compared(admin, text):
    add_rows(Article, lambda pk, ago: 10_000 // pk - ago, 300, 1, 31)

    assert CAVEAT in text(admin.get(URL))


# Files with all rows


@pytest.mark.parametrize("name", ["top", "rising", "falling"])
def test_a_file_has_all_rows_in_the_order_of_the_page(admin, name):
    articles = Article.objects.bulk_create(Article() for _ in range(25))
    pages = Page.objects.bulk_create(Page(path=f"/{number}/") for number in range(5))
    for number, obj in enumerate([*articles, *pages]):
        add_day(obj, 100 + 3 * number if name != "falling" else 50, 1)
        add_day(obj, 50 if name != "falling" else 100 + 3 * number, 2)
        record(obj, 1, days_ago=9)
    address = f"{URL}?period=yesterday"
    rows = table(admin.get(f"{address}&csv={name}"))[1:]

    assert [row[0] for row in rows] == [str(number) for number in range(1, 31)]
    assert len({(row[2], row[3]) for row in rows}) == 30
    shown = [row[1 if name == "top" else 0] for row in section(admin.get(address), name)]
    assert [row[1] for row in rows[:10]] == shown
    assert len(shown) == 10
    scores = [int(row[4] if name == "top" else row[6]) for row in rows]
    assert scores == sorted(scores, key=abs, reverse=True)


def test_a_file_of_what_rises_today_has_the_most_hits_first(admin):
    """Today has no period before. Some objects have several rows."""
    many, few, some = (make(Article, hits, days_ago=0) for hits in (8, 1, 3))
    for _ in range(6):
        record(some, 1, 0)
    rows = table(admin.get(f"{URL}?period=today&csv=rising"))[1:]

    assert [row[1] for row in rows] == [str(some), str(many), str(few)]


@pytest.mark.django_db(transaction=True)  # Without savepoints, which are queries, too.
def test_a_file_costs_a_query_for_each_thousand_objects_of_a_model(admin):
    Article.objects.bulk_create([Article() for _ in range(2500)], batch_size=500)
    add_rows(Article, lambda pk, ago: pk, 2500, 1)
    compact()
    with CaptureQueriesContext(connection) as queries:
        assert len(table(admin.get(f"{URL}?csv=top"))) == 2501

    assert len(queries) == 2 + 1 + 1 + 1 + 3  # User; models; days; sums; objects.


def test_objects_of_all_models_are_named_in_a_file(admin):
    made = [make(model, 10) for model in (Article, Photo, Plain, Tag)]

    names = {row[1] for row in table(admin.get(f"{URL}?csv=top"))[1:]}
    assert names == {str(obj) for obj in made}


def test_visitors_in_a_file_are_those_of_the_first_rows(admin, settings, monkeypatch):
    monkeypatch.setattr("django_hitcount.admin.report.ROWS_AT_A_TIME", 4)
    monkeypatch.setattr("django_hitcount.admin.report.VISITORS_AT_A_TIME", 2)
    set_rule(settings, visitors=True)
    for number in range(6):
        record(make(Article, 20 - number), 1, request=visit())

    rows = table(admin.get(f"{URL}?csv=top"))[1:]
    assert [row[6] for row in rows] == ["1", "1", "1", "1", "", ""]


def test_visitors_in_a_file_are_not_read_as_those_of_a_page(admin, settings, monkeypatch):
    """So a slow file stops the reads of no page, and a page that waits those of no file."""
    set_rule(settings, visitors=True)
    record(make(Article, 20), 1, request=visit())
    monkeypatch.setattr(page_read_breaker(), "is_open", True)
    monkeypatch.setattr(page_read_breaker(), "_paused_until", float("inf"))

    rows = table(admin.get(f"{URL}?csv=top"))[1:]
    assert [row[6] for row in rows] == ["1"]


def test_a_file_is_sent_while_it_is_read(admin, monkeypatch):
    monkeypatch.setattr("django_hitcount.admin.report.ROWS_AT_A_TIME", 500)
    add_rows(Plain, lambda pk, ago: pk, 2000, 1)
    response = admin.get(f"{URL}?csv=top")
    pieces = iter(response.streaming_content)
    with CaptureQueriesContext(connection) as queries:
        next(pieces)  # The byte order mark.
    with CaptureQueriesContext(connection) as more_queries:
        next(pieces)

    assert response.streaming
    assert len(queries) == 0
    assert sum("app_plain" in query["sql"] for query in more_queries) == 1
    assert sum(piece.count(b"\r\n") for piece in pieces) == 1501
