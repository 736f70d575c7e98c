"""The parts of the example project that need neither a database nor a server."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest
from blog.paths import clean_path, is_reserved, path_to_url
from demo import replayed_days
from demo.access_log import PageRequest, article_path, is_page, parse_log
from demo.due import NO_PAGE, Due, due, refusal_of
from demo.made_up_visits import DAYS, VIRAL_DAYS_AGO, VIRAL_PATH, Readable, Visit, make_visits
from demo.processes import Interrupted, Processes
from demo.progress import Progress
from demo.report import Report, Stored, is_plausible
from demo.running import Options, serve
from demo.sending import headers_of, is_right_answer
from django.test import RequestFactory

ROOT = Path(__file__).parent.parent
AGENT = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/29.0"


def log_line(request: str = "GET /tea HTTP/1.1", status: int = 200, agent: str = AGENT) -> str:
    return f'203.0.113.9 - - [17/May/2015:10:05:03 +0000] "{request}" {status} 512 "-" "{agent}"\n'


def test_what_its_pages_count() -> None:
    """Its own tests, with its own settings."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    del environment["DJANGO_SETTINGS_MODULE"]
    command = [
        sys.executable,
        "-W",
        "error",
        ROOT / "example_project" / "manage.py",
        "test",
        "blog",
    ]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "Ran 10 tests" in done.stderr


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/tea",
        "/tea/",
        "/tea.html",
        "/v1.2/",
        "/tags/c++",
        "/notes.py",
        "/tags/rss",
        "/?b=c.png",
    ],
)
def test_what_a_visitor_reads_is_a_page(target: str) -> None:
    assert is_page(target)


@pytest.mark.parametrize(
    "target",
    [
        "/a.png", "/a.PNG?x=1", "/site.css", "/site.js", "/font.woff", "/favicon.ico",
        "/robots.txt", "/feed/", "/blog/feed", "/index.xml", "/?flav=rss20", "/tea?flav=atom",
        "/?feed=rss2", "/setup.exe", "/paper.pdf",
    ],
)  # fmt: skip
def test_parts_files_and_feeds_are_no_pages(target: str) -> None:
    assert not is_page(target)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", ""),
        ("/?page=2", ""),
        ("/tea/?utm_source=x", "tea"),
        ("//tea///green/", "tea/green"),
        ("/is%20it%20done", "is it done"),
        ("/th%C3%A9", "thé"),
        ("/th\u00c3\u00a9", "thé"),
        ("/%ff", "\ufffd"),
        ("/100%", "100%"),
        ("/a%00b%0A", "ab"),
        ("/Tea", "Tea"),
        ("http://example.com/tea", "tea"),
        ("/admin/login/", "~admin/login"),
        ("/static/x", "~static/x"),
        ("/-/pages/about", "~-/pages/about"),
        ("/administration", "administration"),
    ],
)
def test_each_page_is_one_article(target: str, path: str) -> None:
    assert article_path(target) == path


@pytest.mark.parametrize("path", ["", "tea", "a b/c?d#e%", "thé", "c++", ":("])
def test_an_article_is_served_under_the_path_that_leads_back_to_it(path: str) -> None:
    assert article_path(path_to_url(path)) == path


def test_a_clean_path_is_left_alone() -> None:
    assert clean_path(clean_path("/a//b \n/")) == clean_path("/a//b \n/") == "a/b "


def test_only_whole_first_segments_are_reserved() -> None:
    paths = ["admin", "static/x", "administration", "x/admin"]
    assert [is_reserved(path) for path in paths] == [True, True, False, False]


def test_a_page_request_keeps_method_path_address_and_user_agent() -> None:
    log = parse_log([log_line("HEAD /tea/?a=b HTTP/1.1")])
    at = datetime(2015, 5, 17, 10, 5, 3, tzinfo=UTC)
    assert log.page_requests == [PageRequest("HEAD", "tea", "203.0.113.9", AGENT, at)]


@pytest.mark.parametrize("status", [200, 304])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_what_was_answered_with_a_page_is_a_page_request(method: str, status: int) -> None:
    log = parse_log([log_line(f"{method} /tea HTTP/1.1", status=status)])
    assert len(log.page_requests) == 1


@pytest.mark.parametrize(
    "line",
    [
        log_line(status=404),
        log_line(status=301),
        log_line("POST /tea HTTP/1.1", status=403),
        log_line("GET /tea.png HTTP/1.1"),
        log_line("TRACE /tea HTTP/1.1"),
        log_line("-"),
    ],
)
def test_other_requests_are_counted_apart(line: str) -> None:
    log = parse_log([line])
    assert (log.page_requests, log.others, log.malformed) == ([], 1, 0)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "garbage",
        log_line()[:-3],
        log_line().replace("[", ""),
        log_line().replace("17/May", "32/May"),
    ],
)
def test_a_malformed_line_is_counted_and_not_fatal(line: str) -> None:
    log = parse_log([line, log_line()])
    assert (len(log.page_requests), log.others, log.malformed) == (1, 0, 1)


def test_escaped_quotes_belong_to_the_user_agent() -> None:
    log = parse_log([log_line(agent=r"a \"quoted\" agent \\")])
    assert log.page_requests[0].user_agent == 'a "quoted" agent \\'


def test_a_space_in_the_target_is_kept() -> None:
    assert parse_log([log_line("GET /a b HTTP/1.1")]).page_requests[0].path == "a b"


def test_a_user_agent_that_was_not_sent_is_not_sent_again() -> None:
    (nameless,) = parse_log([log_line(agent="-")]).page_requests
    assert headers_of(nameless) == {"X-Forwarded-For": "203.0.113.9"}
    assert headers_of(request()) == {"X-Forwarded-For": "203.0.113.9", "User-Agent": AGENT}


@pytest.mark.parametrize(
    ("method", "status", "is_right"),
    [
        ("GET", 200, True),
        ("GET", 403, False),
        ("HEAD", 200, True),
        ("HEAD", 405, False),
        ("POST", 403, True),
        ("POST", 500, False),
        ("OPTIONS", 200, True),
    ],
)
def test_pages_are_shown_and_posts_turned_away(method: str, status: int, is_right: bool) -> None:
    assert is_right_answer(method, status) is is_right


@pytest.mark.parametrize("moment", ["2015-05-17T10:05:03Z", "2015-05-17T23:30:00-04:00"])
def test_the_moment_of_a_replayed_request_reaches_the_site(moment: str) -> None:
    at = datetime.fromisoformat(moment)
    replayed = RequestFactory().get("/", headers=replayed_days.headers_of(at))
    assert replayed_days.read_moment(replayed) == at


@pytest.mark.parametrize("value", ["", "2015-05-17T10:05:03Z", "2015-05-17T10:05:03Z:forged"])
def test_a_moment_that_the_replay_has_not_signed_is_ignored(value: str) -> None:
    forged = RequestFactory().get("/", headers={replayed_days.HEADER: value})
    assert replayed_days.read_moment(forged) is None


DAY = date(2015, 5, 17)


def request(
    method: str = "GET",
    path: str = "tea",
    address: str = "203.0.113.9",
    agent: str = AGENT,
    at: str = "2015-05-17T10:05:03Z",
) -> PageRequest:
    return PageRequest(method, path, address, agent, datetime.fromisoformat(at))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (request(), None),
        (request(agent=""), "bot"),
        (request(agent="Mozilla/5.0 (compatible; Googlebot/2.1)"), "bot"),
        (request("HEAD"), "method"),
        (request("HEAD", agent=""), "method"),
        (request("POST"), NO_PAGE),
    ],
)
def test_bots_and_other_methods_than_get_are_due_no_hit(
    asked: PageRequest, reason: str | None
) -> None:
    assert refusal_of(asked) == reason


def test_a_visitor_is_due_once_however_often_they_come() -> None:
    sums = due([request(), request(), request(address="203.0.113.10"), request(agent=f"{AGENT} x")])
    assert (sums.hits["tea"], len(sums.visitors["tea"])) == (4, 3)


def test_a_household_of_ipv6_is_one_address() -> None:
    addresses = ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2", "2001:db8:0:2::1", "::ffff:192.0.2.1"]
    sums = due([request(address=address) for address in addresses])
    assert {address for _, address, _ in sums.visitors["tea"]} == {
        "2001:db8:0:1::/64",
        "2001:db8:0:2::/64",
        "192.0.2.1",
    }


@pytest.mark.parametrize(
    ("visitors", "wrong", "right"),
    [
        (0, [1], [0]),
        (1, [0, 2], [1]),
        (2, [0, 4], [1, 2, 3]),
        (100, [93, 107], [94, 100, 106]),
    ],
)
def test_an_estimate_may_be_wrong_by_so_much(
    visitors: int, wrong: list[int], right: list[int]
) -> None:
    assert not any(is_plausible(estimate, visitors) for estimate in wrong)
    assert all(is_plausible(estimate, visitors) for estimate in right)


def test_visitors_count_again_after_midnight_of_the_site() -> None:
    moments = ["2015-05-17T23:59:59Z", "2015-05-18T01:30:00+02:00", "2015-05-17T20:30:00-04:00"]
    sums = due(request(at=at) for at in moments)
    assert sums.hits_by_day == {DAY: 2, date(2015, 5, 18): 1}
    assert len(sums.visitors["tea"]) == 2


def due_and_stored() -> tuple[Due, Stored]:
    """Two pages of three hits by two visitors, and a bot, with the tables as they should be."""
    second = request(path="", address="203.0.113.10")
    sums = due([request(), request(), second, request("HEAD"), request(agent="")])
    stored = Stored(
        refused={"bot": 1, "method": 1},
        hits={"tea": 2, "": 1},
        visitors={"tea": 1, "": 1},
        hits_by_day={DAY: 3},
    )
    return sums, stored


def test_what_is_due_and_in_the_tables_agrees() -> None:
    report = Report.compare(*due_and_stored())
    assert report.agrees
    assert [(row.path, row.requests, row.hits) for row in report.pages] == [
        ("tea", 4, 2),
        ("", 1, 1),
    ]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("hits", {"tea": 1}),
        ("hits", {"tea": 3}),
        ("hits", {"coffee": 1}),
        ("visitors", {"tea": 2}),
        ("visitors", {"": 0}),
        ("visitors", {"coffee": 1}),
        ("refused", {"bot": 2}),
        ("refused", {"prefetch": 1}),
        ("refused", {NO_PAGE: 1}),
        ("hits_by_day", {DAY: 2}),
        ("hits_by_day", {date(2015, 5, 18): 1}),
    ],
)
def test_any_difference_in_any_table_is_a_disagreement(table: str, change: dict[str, int]) -> None:
    sums, stored = due_and_stored()
    getattr(stored, table).update(change)
    report = Report.compare(sums, stored)
    assert not report.agrees
    assert any(line.endswith("DIFFERS") for line in report.lines())


def test_many_small_errors_of_one_kind_are_a_disagreement() -> None:
    sums = due(
        request(path=f"{page}", address=f"192.0.2.{n}") for page in range(40) for n in range(3)
    )
    hits = dict(sums.hits)
    days = {DAY: 120}
    assert Report.compare(sums, Stored({}, hits, dict.fromkeys(hits, 3), days)).agrees
    assert not Report.compare(sums, Stored({}, hits, dict.fromkeys(hits, 4), days)).agrees


def test_a_page_request_that_failed_is_a_disagreement() -> None:
    assert not Report.compare(*due_and_stored(), failures=1).agrees


def test_the_report_shows_shares_and_ends_with_whether_they_agree() -> None:
    lines = [*Report.compare(*due_and_stored()).lines()]
    assert any(line.split()[:4] == ["bot", "1", "20.0%", "1"] for line in lines)
    assert lines[-1] == (
        "They agree on each of 2 pages: 3 hits due, 3 in the table; "
        "2 visitors due, 2 in the table's estimate."
    )


def test_the_report_shows_each_day() -> None:
    lines = [*Report.compare(*due_and_stored()).lines()]
    assert ["2015-05-17", "5", "3", "3"] in [line.split() for line in lines]


def test_a_disagreement_is_the_last_line() -> None:
    sums, stored = due_and_stored()
    stored.hits["tea"] = 1
    *_, last = Report.compare(sums, stored).lines()
    assert last.startswith("They DISAGREE on 1 of 2 pages and on 0 reasons to refuse: 3 hits due")


def test_progress_off_a_terminal_is_a_line_for_each_tenth() -> None:
    stream = io.StringIO()
    progress = Progress(25, stream)
    for _ in range(25):
        progress.advance()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("25 of 25 sent")


TODAY = datetime(2026, 3, 18, tzinfo=UTC)
ARTICLES = [
    Readable(path, TODAY - timedelta(days=days, hours=-9), rank)
    for rank, (path, days) in enumerate([("tea", 80), (VIRAL_PATH, 30), ("new", 2)], 1)
]


def visits_of(days_ago: int) -> list[Visit]:
    midnight = TODAY - timedelta(days=days_ago)
    return make_visits(midnight, days_ago=days_ago, articles=ARTICLES)


def test_a_made_up_day_is_always_the_same_and_no_day_is_like_another() -> None:
    assert visits_of(3) == visits_of(3)
    assert visits_of(3) != visits_of(4)


def test_made_up_visits_are_of_their_day_and_in_order() -> None:
    moments = [visit.at for visit in visits_of(3)]
    assert moments == sorted(moments)
    assert {moment.date() for moment in moments} == {TODAY.date() - timedelta(days=3)}


def test_made_up_visits_grow_and_are_fewer_at_weekends() -> None:
    visits = {days: len(visits_of(days)) for days in range(DAYS + 1) if days > VIRAL_DAYS_AGO}
    first, last = (
        sum(visits[days] for days in range(start, start + 14)) for start in (DAYS - 13, 17)
    )
    assert first * 1.2 < last < first * 2.5
    weekend = [n for days, n in visits.items() if (TODAY - timedelta(days=days)).weekday() > 4]
    assert sum(weekend) / len(weekend) < 0.8 * sum(visits.values()) / len(visits)


def test_one_article_goes_viral_and_is_forgotten() -> None:
    reads = [
        sum(visit.paths.count(VIRAL_PATH) for visit in visits_of(days)) for days in range(DAYS)
    ]
    assert reads.index(max(reads)) == VIRAL_DAYS_AGO - 1
    assert max(reads) > 5 * max(*reads[VIRAL_DAYS_AGO + 1 :], *reads[:3])


def test_nobody_reads_an_article_before_it_is_published() -> None:
    for days in (1, 2, 3, 29, 30, 31):
        for visit in visits_of(days):
            published = {article.path: article.published_at for article in ARTICLES}
            assert all(published.get(path, visit.at) <= visit.at for path in visit.paths)


def test_a_new_article_is_read_more_than_later() -> None:
    old = [Readable("tea", TODAY - timedelta(days=40), 1)]
    new = Readable("new", TODAY, 1)
    first = Counter(
        path
        for visit in make_visits(TODAY, days_ago=0, articles=[*old, new])
        for path in visit.paths
    )
    assert first["new"] > 2 * first["tea"]


def test_addresses_of_made_up_visitors_belong_to_nobody() -> None:
    assert all(visit.address.startswith("2001:db8:") for visit in visits_of(VIRAL_DAYS_AGO))
    assert all(int(visit.address.split(":")[2], 16) < 0x10000 for visit in visits_of(1))


@pytest.mark.parametrize(("stay", "end"), [(True, Interrupted), (False, SystemExit)])
def test_site_stays_although_the_replay_found_a_difference(stay: bool, end: type) -> None:
    """So that one can look at it."""
    processes = mock.create_autospec(Processes, instance=True)
    processes.run.return_value = 1
    processes.wait_until.side_effect = Interrupted
    options = Options(port=None, replay=Path("access.log"), empty=False, stay=stay)
    with pytest.raises(end):
        serve(processes, 8000, options)
