"""Access logs, and the pages of Plausible: a URL becomes the object that its page shows."""

from __future__ import annotations

import datetime
import gzip
from collections import Counter
from urllib.parse import unquote

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import path
from django.views.decorators.cache import cache_page
from django.views.generic import DeleteView, DetailView, ListView

from django_hitcount import get_hits, get_refused_hits, get_visitors, import_hits, undo_import
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import (
    DailyHitSlot,
    DailyVisitors,
    HitSlot,
    ImportedHits,
    RefusedHitSlot,
)
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing import LogFiles, PlausibleFiles, find_object, urls
from django_hitcount.importing.logs import LINE
from django_hitcount.maintenance.flushing import flush_hits
from tests.app.models import Article, Page
from tests.replay import counts, site
from tests.replay.access_log import NOT_SENT, log_of, made_up_lines, read
from tests.test_replay import REAL_LOG

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis"),
    pytest.mark.urls(__name__),
]

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
MAY = datetime.date(2024, 5, 1)


class Draft(DetailView):
    def get_object(self, queryset=None):
        raise PermissionDenied


class Broken(DetailView):
    def get_object(self, queryset=None):
        raise ZeroDivisionError("by zero")


class Mine(DetailView):
    queryset = Article.objects.filter(title="shown")

    def get_object(self, queryset=None):
        assert not self.request.user.is_authenticated
        return super().get_object(queryset)


def by_function(request, pk):
    return HttpResponse()


urlpatterns = [
    path("articles/<int:pk>/", DetailView.as_view(model=Article)),
    path("cached/<int:pk>/", cache_page(60)(DetailView.as_view(model=Article))),
    path("shown/<int:pk>/", Mine.as_view()),
    path("delete/<int:pk>/", DeleteView.as_view(model=Article)),
    path("list/", ListView.as_view(model=Article)),
    path("draft/<int:pk>/", Draft.as_view()),
    path("broken/<int:pk>/", Broken.as_view()),
    path("function/<int:pk>/", by_function),
    path("pages/<path:pk>", DetailView.as_view(model=Page)),
]

PAGES: dict[str, Article] = {}
"""The objects of the pages of a log, by path."""

DECODED: dict[str, Article] = {}
"""The same by path, as a request has it."""


def find_page(request):
    if request.path.startswith("/function/"):
        assert request.GET.get("from") in (None, "tea & cake")
        return Article.objects.get(pk=request.path.split("/")[2])
    if request.path == "/missing/":
        raise Http404
    return DECODED.get(request.path)


async def find_async(request):
    return None


def line(url="/articles/1/", *, at="01/May/2024:12:00:00 +0000", **more):
    parts = {
        "address": "203.0.113.1",
        "method": "GET",
        "status": "200",
        "agent": FIREFOX,
        "user": "-",
        **more,
    }
    return (
        f'{parts["address"]} - {parts["user"]} [{at}] "{parts["method"]} {url} HTTP/1.1" '
        f'{parts["status"]} 512 "https://example.com/" "{parts["agent"]}"\n'
    )


@pytest.fixture
def article() -> Article:
    return Article.objects.create(pk=1, title="shown")


@pytest.fixture
def run(tmp_path):
    def run(*lines, resolver=None, counter="views", **options):
        (tmp_path / "access.log").write_text("".join(lines))
        return import_hits(LogFiles([tmp_path / "access.log"], counter, resolver), **options)

    return run


@pytest.mark.parametrize("prefix", ["articles", "cached", "shown"])
def test_pages_of_detail_views_count(buffer, article, run, prefix):
    done = run(line(f"/{prefix}/1/"), line(f"/{prefix}/1/?page=2"), line(f"/{prefix}/2/"))

    assert done.import_id.startswith("log access.log ")
    assert (done.hits, get_hits(article)) == (2, 2)
    assert done.skipped == {"no object at the URL": 1}


@pytest.mark.parametrize(
    "url", ["/delete/1/", "/list/", "/draft/1/", "/function/1/", "/nowhere/", "http://x/", "*"]
)
def test_other_pages_do_not_count(buffer, article, run, url):
    done = run(line(url))

    assert (done.hits, done.problems, done.skipped) == (0, 0, {"no object at the URL": 1})


def test_a_view_that_raises_is_a_problem_once(buffer, article, run):
    done = run(line("/broken/1/"), line("/broken/1/"), line())

    assert (done.hits, done.problems) == (1, 1)
    assert done.shown_problems == [
        "access.log, line 1: the view of '/broken/1/' raised ZeroDivisionError: by zero"
    ]


def test_keys_in_urls_are_decoded(buffer, run):
    page = Page.objects.create(path="ü b/c")

    assert run(line("/pages/%C3%BC%20b/c?x=%20")).hits == 1
    assert get_hits(page) == 1


def test_a_resolver_finds_other_objects(buffer, article, run):
    done = run(
        line("/function/1/?from=tea+%26+cake"),
        line("/function/77/"),
        line("/missing/"),
        line(),
        resolver=f"{__name__}.find_page",
    )

    assert (done.hits, done.problems) == (1, 0)


@pytest.mark.parametrize(
    ("resolver", "message"),
    [
        ("nowhere.find", "cannot be used: No module named"),
        (f"{__name__}.DECODED", "is not a plain function"),
        (f"{__name__}.find_async", "is not a plain function"),
    ],
)
def test_an_invalid_resolver_is_an_error(buffer, run, resolver, message):
    with pytest.raises(InvalidArgument, match=message):
        run(line(), resolver=resolver)


def test_each_path_is_looked_up_once(buffer, article, run, django_assert_num_queries, monkeypatch):
    calls = []
    monkeypatch.setattr(urls, "find_object", lambda request: calls.append(1) or article)
    run(*[line(f"/articles/1/?{n}") for n in range(50)])
    assert len(calls) == 1
    calls.clear()
    monkeypatch.setattr(urls, "REMEMBERED_URLS", 2)
    run(*[line(f"/a{n % 4}/", at="02/May/2024:12:00:00 +0000") for n in range(8)], import_id="b")
    assert len(calls) == 8
    calls.clear()
    often = [f"/{name}/" for name in "abacacada"]  # The ones that were requested last are kept.
    run(*[line(url, at="03/May/2024:12:00:00 +0000") for url in often], import_id="c")
    assert len(calls) == 4


@pytest.mark.parametrize("status", ["301", "404", "500", "206"])
def test_other_answers_do_not_count(buffer, article, run, status):
    done = run(line(status=status), line(status="304"))

    assert done.hits == 1
    assert done.skipped == {"a status other than 200 and 304": 1}


@pytest.mark.parametrize(
    ("more", "refusal"),
    [({"agent": "Googlebot/2.1"}, "bot"), ({"agent": "-"}, "bot"), ({"method": "POST"}, "method")],
)
def test_refused_hits_are_counted_as_refused_and_taken_back(buffer, article, run, more, refusal):
    done = run(line(**more), line(**more), line())

    assert (done.hits, done.refused) == (1, {refusal: 2})
    found = get_refused_hits(first_day=MAY, last_day=MAY)
    assert [(row.refusal, row.hits) for row in found] == [(refusal, 2)]
    undo_import(done.import_id)
    assert sum(row.hits for row in get_refused_hits(first_day=MAY, last_day=MAY)) == 0


def test_refused_hits_of_days_that_are_left_out_are_left_out(buffer, article, run):
    rows = [line(agent="Googlebot/2.1", at=f"0{day}/May/2024:12:00:00 +0000") for day in (1, 2, 3)]
    day = datetime.date(2024, 5, 2)

    done = run(*rows, line(), first_day=day, last_day=day)

    assert (done.hits, done.refused) == (0, {"bot": 1})
    assert done.skipped == {"a day that was left out": 3}
    found = get_refused_hits(first_day=MAY, last_day=datetime.date(2024, 5, 9))
    assert [row.day for row in found] == [day]


def test_refused_hits_of_today_are_left_out(buffer, article, run):
    """Today is no problem for them: no hit is lost."""
    today = f"{day_of():%d/%b/%Y}:00:00:01 +0000"
    done = run(line(agent="Googlebot/2.1", at=today), line(), strategy="replace", strict=True)

    assert (done.problems, done.refused) == (0, {})
    assert done.skipped == {"a day that was left out": 1}


@pytest.mark.parametrize(
    ("at", "day"),
    [
        ("01/May/2024:21:59:59 +0000", MAY),
        ("01/May/2024:22:00:00 +0000", datetime.date(2024, 5, 2)),
        ("02/May/2024:00:00:00 +0200", datetime.date(2024, 5, 2)),
        ("01/May/2024:23:59:59 +0200", MAY),
        ("01/May/2024:16:00:00 -0700", datetime.date(2024, 5, 2)),
        ("31/Dec/2023:23:30:00 +0000", datetime.date(2024, 1, 1)),
    ],
)
@pytest.mark.parametrize("use_tz", [True, False])
def test_the_day_is_that_of_the_site(buffer, article, run, settings, at, day, use_tz):
    settings.USE_TZ = use_tz
    run(line(at=at))

    assert get_hits(article, first_day=day, last_day=day) == 1


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        line(at="yesterday"),
        line(at="01/Foo/2024:12:00:00 +0000"),
        '203.0.113.1 - - [01/May/2024:12:00:00 +0000] "GET / HTTP/1.1" 200 512',
        "\x16\x03\x01\udc80"[:3],
    ],
)
def test_a_line_in_another_format_is_a_problem(buffer, article, run, text):
    done = run(line(), "\n", text + "\n", line())

    assert (done.hits, done.problems) == (2, 1)
    assert done.shown_problems[0].startswith("access.log, line 3: not in combined format")


def test_nonsense_of_clients_is_no_problem(buffer, article, run):
    requests = [r"\x16\x03\x01", "-", "", "GET", "GET /articles/1/"]
    rows = [line().replace("GET /articles/1/ HTTP/1.1", request) for request in requests]

    done = run(*rows, line(agent=rf"{FIREFOX} \"quoted\" \\"), line(user="ann smith"))

    assert (done.hits, done.problems) == (3, 0)


@pytest.mark.parametrize("text", ["[", "\\", "[a]"])
def test_a_long_line_takes_no_longer_than_short_ones(text):
    """So clients cannot make an import slow. Quadratic time would be hours."""
    start = '203.0.113.1 - - [01/May/2024:12:00:00 +0000] "GET /'

    assert LINE.match(start + text * 1_000_000) is None


def test_quotes_in_a_url_are_part_of_it(buffer, article, run):
    done = run(line('/articles/1/?q=\\"a b\\"'), line('/articles/1/?q="'))

    assert (done.hits, done.problems) == (2, 0)


def test_logs_may_be_compressed(buffer, article, tmp_path):
    (tmp_path / "a.log.1.gz").write_bytes(gzip.compress(line().encode() + b"\xff\n"))
    (tmp_path / "a.log").write_text(line())

    done = import_hits(LogFiles([tmp_path / "a.log.1.gz", tmp_path / "a.log"]))

    assert (done.hits, done.problems) == (2, 1)


def test_a_repeat_counts_again_after_the_seconds_of_the_rule(rule, article, run):
    rule(repeat=600, visitors=True)
    times = ("12:00:00", "12:05:00", "12:09:59", "12:10:00", "12:19:00", "12:20:00")

    done = run(*[line(at=f"01/May/2024:{time} +0000") for time in times])

    assert (done.hits, done.visitors, done.refused) == (3, 1, {"repeat": 3})


def test_an_address_counts_no_more_than_its_limit(rule, article, run, settings):
    counter = {"repeat": "daily", "visitors": True, "per_address": 2}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": counter}}
    rows = [line(agent=f"{FIREFOX} {n}") for n in range(5)]

    done = run(*rows, *rows[:1], line(address="203.0.113.9"))

    assert (done.hits, done.visitors, done.refused) == (3, 3, {"address_limit": 4})


def test_visitors_of_a_log_are_only_numbers(rule, article, run):
    rule(visitors=True)
    done = run(line(), line(), line(address="203.0.113.2"), line(agent=FIREFOX + "a"))

    assert get_visitors(article, first_day=MAY, last_day=MAY) == 3
    (row,) = DailyVisitors.objects.values_list("count", "sketch")
    assert row == (3, None)
    undo_import(done.import_id)
    assert not DailyVisitors.objects.exists()


@pytest.mark.parametrize(("refuses", "hits"), [("visitor", 2), ("hit", 0)])
def test_nobody_in_a_log_has_given_consent(rule, article, run, settings, refuses, hits):
    rule("daily", visitors=True)
    options = {"predicate": lambda request: "agreed" in request.COOKIES, "refuses": refuses}
    asking = {"NAME": "django_hitcount.refusals.consent", "OPTIONS": options}
    settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": [asking]}
    run(line(), line(at="01/May/2024:12:00:05 +0000"))

    assert get_hits(article) == hits
    assert get_visitors(article, first_day=MAY, last_day=MAY) == 0


def without_names(log):
    return [asked._replace(name=NOT_SENT) for asked in log]


@pytest.fixture(params=["made-up", *([REAL_LOG] if REAL_LOG else [])])
def log_file(request, tmp_path):
    """A log in which nobody has a session, and what is requested in it."""
    if request.param != "made-up":
        return request.param, without_names(log_of(request.param))
    lines = [row.replace(f" - {row.split()[2]} [", " - - [", 1) for row in made_up_lines()]
    (tmp_path / "made-up.log").write_text("".join(lines))
    return str(tmp_path / "made-up.log"), read(lines)


def imported(log_file, settings, *, counters=counts.COUNTERS):
    """Import a log for each of the counters; returns the pages."""
    name, log = log_file
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters, "TRUSTED_PROXIES": 0}
    pages = sorted({asked.page for asked in log})
    for number, article in enumerate(
        Article.objects.bulk_create(Article(pk=n) for n in range(1, len(pages) + 1))
    ):
        PAGES[pages[number]] = article
    DECODED.update({unquote(page): article for page, article in PAGES.items()})
    assert len(DECODED) == len(PAGES)
    for counter in counters:
        import_hits(LogFiles([name], counter, f"{__name__}.find_page"))
    flush_hits()
    return {str(article.pk): page for page, article in PAGES.items()}


def refused_on(days):
    """The refused hits by day, counter and refusal."""
    rows = get_refused_hits(first_day=min(days), last_day=max(days))
    return {(row.day, row.counter, row.refusal): row.hits for row in rows}


def test_an_imported_log_has_what_a_few_lines_count(buffer, settings, log_file):
    PAGES.clear()
    DECODED.clear()
    pages = imported(log_file, settings)
    due = counts.due(log_file[1])
    found = ImportedHits.objects.values_list("object_id", "counter", "day", "hits")
    hits = {(pages[pk], counter, day): n for pk, counter, day, n in found if n}
    refused = refused_on({asked.day for asked in log_file[1]})
    visitors = DailyVisitors.objects.filter(counter="views").values_list(
        "object_id", "day", "count"
    )

    for counter in ("views", "readers"):
        assert {k: n for k, n in hits.items() if k[1] == counter} == {
            k: n for k, n in due.hits.items() if k[1] == counter
        }
    for counter in ("views", "readers"):
        assert {k: n for k, n in refused.items() if k[1] == counter} == {
            k: n for k, n in due.refused.items() if k[1] == counter
        }
    assert {(pages[pk], day): n for pk, day, n in visitors} == due.visitors
    # By the clock of the log.
    sessions, last = Counter(), {}
    for asked in log_file[1]:
        who = (asked.page, asked.visitor)
        if not asked.refusal and (
            who not in last or (asked.at - last[who]).total_seconds() >= counts.INTERVAL_SECONDS
        ):
            last[who] = asked.at
            sessions[asked.page, "sessions", asked.day] += 1
    assert {k: n for k, n in hits.items() if k[1] == "sessions"} == sessions


@pytest.mark.long
def test_an_imported_log_equals_its_replay(buffer, redis, settings, log_file):
    """Through real requests, at the times that the log says."""
    counters = {name: counts.COUNTERS[name] for name in ("views", "readers")}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counts.COUNTERS, "TRUSTED_PROXIES": 0}
    settings.ROOT_URLCONF = site.__name__
    replay = site.run(log_file[1], redis, is_exact=settings.HITCOUNT["REDIS"] is None)
    for table in (HitSlot, DailyHitSlot, RefusedHitSlot, DailyVisitors):
        table.objects.all().delete()
    redis.flushall()
    Article.objects.all()._raw_delete("default")
    settings.ROOT_URLCONF = __name__
    PAGES.clear()
    DECODED.clear()
    imported(log_file, settings, counters=counters)

    articles = dict(PAGES)
    totals = get_hits(articles.values())
    assert {page: totals[article] for page, article in articles.items()} == {
        page: replay.found.totals.get((page, "views"), 0) for page in articles
    }
    days = {asked.day for asked in log_file[1]}
    for day in days:
        hits = get_hits(articles.values(), first_day=day, last_day=day)
        visitors = get_visitors(articles.values(), first_day=day, last_day=day)
        for page, article in articles.items():
            assert hits[article] == replay.found.hits.get((page, "views", day), 0)
            assert abs(visitors[article] - replay.found.visitors.get((page, day), 0)) <= (
                0 if replay.is_exact else 2
            )
    refused = refused_on(days)
    of_replay = {k: n for k, n in replay.found.refused.items() if k[1] in counters}
    assert refused.keys() == of_replay.keys()
    if replay.is_exact:
        assert refused == of_replay


PLAUSIBLE = (
    '"date","hostname","page","visits","visitors","pageviews","total_scroll_depth",'
    '"total_scroll_depth_visits","total_time_on_page","total_time_on_page_visits"\n'
    '"2024-05-01","example.com","/articles/1/",4,3,7,150,3,900,4\n'
    '"2024-05-02","example.com","/articles/1/",1,1,1,20,1,4,1\n'
    '"2024-05-02","example.com","/about/",9,9,9,0,0,0,0\n'
    '"2024-05-02","example.com","/articles/1/",x,x,x,0,0,0,0\n'
    '"2024-05-02","example.com"\n'
    '"2024-05-02","example.com","/articles/1/",4,3\n'
)


def test_pages_of_plausible_are_read_unchanged(rule, article, tmp_path):
    rule(visitors=True)
    name = "imported_pages_20240501_20240502.csv"
    (tmp_path / name).write_text(PLAUSIBLE)

    done = import_hits(PlausibleFiles([tmp_path / name]))

    assert done.import_id.startswith(f"plausible {name} ")
    assert (done.hits, done.visitors, get_hits(article)) == (8, 4, 8)
    assert get_visitors(article, first_day=MAY, last_day=MAY) == 3
    assert done.skipped == {"no object at the URL": 1}
    assert done.problems == 3
    assert done.shown_problems[0].endswith("line 5: invalid pageviews 'x', not a whole number")
    assert done.shown_problems[1].endswith("line 6: the line has too few columns")
    assert done.shown_problems[2].endswith("line 7: the line has too few columns")


def test_older_pages_of_plausible_are_read_too(buffer, article, tmp_path):
    (tmp_path / "imported_pages.csv").write_text(
        "date,visitors,pageviews,exits,time_on_page,hostname,page\n"
        "2024-05-01,3,7,1,60,example.com,/articles/1/\n"
    )

    assert import_hits(PlausibleFiles([tmp_path / "imported_pages.csv"])).hits == 7


def test_find_object_can_be_called_by_a_resolver(article, rf):
    assert find_object(rf.get("/articles/1/")) == article
    assert find_object(rf.get("/function/1/")) is None
