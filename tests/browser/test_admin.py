"""The pages of the admin, used as an editor uses them."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import pytest

from tests.browser.accessibility import violations
from tests.browser.pages import ARTICLES_IN_ADMIN, REPORT, REPORTS, STATISTICS

BAR = ".hitcount-bars .hitcount-front"
COLOR = "element => getComputedStyle(element).fill"
CELLS = "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(params=REPORTS.values(), ids=REPORTS)
def report(request):
    return request.param


def test_statistics_are_a_link_on_the_form_of_an_article(page):
    page.goto(ARTICLES_IN_ADMIN)
    page.get_by_role("link", name="How to lose count").click()
    page.get_by_role("link", name="Statistics").click()

    assert page.url.endswith(STATISTICS)
    assert "How to lose count" in page.title()


def test_toggle_of_the_admin_makes_a_chart_dark(report, page):
    page.goto(report)
    before = page.evaluate(BACKGROUND), page.locator(BAR).first.evaluate(COLOR)
    page.get_by_role("button", name="Toggle theme").click()
    after = page.evaluate(BACKGROUND), page.locator(BAR).first.evaluate(COLOR)

    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert violations(page) == []


def test_bar_shows_its_value_on_hover_and_by_arrow_keys(report, page):
    page.goto(report)
    figures = page.locator(".hitcount-chart details tbody tr").first.locator("td").first
    columns = page.locator(".hitcount-column")
    first, second = columns.nth(0), columns.nth(1)
    assert figures.text_content() == first.locator("strong").text_content()

    first.hover()
    assert is_shown(first)
    assert not is_shown(second)

    page.mouse.move(0, 0)
    first.locator("input").focus()
    page.keyboard.press("ArrowRight")
    assert is_shown(second)
    assert not is_shown(first)


def is_shown(column) -> bool:
    return column.locator(".hitcount-value").evaluate("e => getComputedStyle(e).opacity") == "1"


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("days", "#hits", 0),
        ("top", "section:has(#top-heading)", 2),
        ("refused", "section:has(#refused-heading)", 0),
    ],
)
def test_csv_has_the_figures_of_the_page(name, table, column, page):
    # The hits of today grow: the tests count them.
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    page.goto(f"{REPORT}?first={yesterday - timedelta(days=29)}&last={yesterday}")
    shown = page.locator(f"{table} tbody tr").evaluate_all(CELLS)
    with page.expect_download() as download:
        page.locator(f"a[href$='csv={name}']").click()
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]

    assert len(rows) > 2
    assert [row["Hits"] for row in rows] == [figures[column].replace(",", "") for figures in shown]


def test_report_of_other_days_has_an_address_of_its_own(page):
    page.goto(REPORT)
    page.get_by_role("link", name="7 days", exact=True).click()
    title, address = page.title(), page.url
    bars = page.locator(".hitcount-column").count()
    page.goto(address)

    assert address.endswith("?period=7")
    assert page.title() == title
    assert page.locator(".hitcount-column").count() == bars == 7
