"""The parts of the example project that need neither a database nor a server."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from blog.paths import clean_path, is_reserved, path_to_url
from demo.access_log import PageView, article_path, is_page, parse_log
from demo.progress import Progress
from demo.report import Report, Row

AGENT = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/29.0"


def log_line(request: str = "GET /tea HTTP/1.1", status: int = 200, agent: str = AGENT) -> str:
    return f'203.0.113.9 - - [17/May/2015:10:05:03 +0000] "{request}" {status} 512 "-" "{agent}"\n'


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


def test_a_page_view_keeps_path_address_and_user_agent() -> None:
    log = parse_log([log_line("GET /tea/?a=b HTTP/1.1")])
    assert log.page_views == [PageView("tea", "203.0.113.9", AGENT)]


@pytest.mark.parametrize("status", [200, 304])
def test_a_page_that_was_shown_is_a_view(status: int) -> None:
    assert len(parse_log([log_line(status=status)]).page_views) == 1


@pytest.mark.parametrize(
    "line",
    [
        log_line(status=404),
        log_line(status=301),
        log_line("POST /tea HTTP/1.1"),
        log_line("HEAD /tea HTTP/1.1"),
        log_line("GET /tea.png HTTP/1.1"),
        log_line("-"),
    ],
)
def test_other_requests_are_counted_apart(line: str) -> None:
    log = parse_log([line])
    assert (log.page_views, log.others, log.malformed) == ([], 1, 0)


@pytest.mark.parametrize(
    "line", ["", "\n", "garbage", log_line()[:-3], log_line().replace("[", "")]
)
def test_a_malformed_line_is_counted_and_not_fatal(line: str) -> None:
    log = parse_log([line, log_line()])
    assert (len(log.page_views), log.others, log.malformed) == (1, 0, 1)


def test_escaped_quotes_belong_to_the_user_agent() -> None:
    log = parse_log([log_line(agent=r"a \"quoted\" agent \\")])
    assert log.page_views[0].user_agent == 'a "quoted" agent \\'


def test_a_space_in_the_target_is_kept() -> None:
    assert parse_log([log_line("GET /a b HTTP/1.1")]).page_views[0].path == "a b"


def test_equal_counts_agree() -> None:
    report = Report.compare(Counter({"a": 2, "": 3}), {"a": 2, "": 3})
    assert report.agrees
    assert report.rows == [Row("", 3, 3), Row("a", 2, 2)]


@pytest.mark.parametrize("stored", [{}, {"a": 1}, {"a": 3}, {"a": 2, "b": 1}, {"b": 2}])
def test_any_difference_on_any_page_is_a_disagreement(stored: dict[str, int]) -> None:
    assert not Report.compare({"a": 2}, stored).agrees


def test_a_failed_page_view_is_a_disagreement() -> None:
    assert not Report.compare({"a": 2}, {"a": 2}, failures=1).agrees


def test_the_last_line_says_whether_they_agree() -> None:
    *_, agreement = Report.compare({"a": 1200}, {"a": 1200}).lines()
    assert agreement == "They agree on each of 1 pages: 1,200 hits sent, 1,200 hits in the table."
    *_, row, disagreement = Report.compare({"a": 2}, {"a": 1}).lines()
    assert row.endswith("DIFFERS")
    assert disagreement.startswith("They DISAGREE on 1 of 1 pages: 2 hits sent, 1 hits")


def test_progress_off_a_terminal_is_a_line_for_each_tenth() -> None:
    stream = io.StringIO()
    progress = Progress(25, stream)
    for _ in range(25):
        progress.advance()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("25 of 25 sent")
