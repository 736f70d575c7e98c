"""The pages of the admin, used as an editor uses them."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import violations
from tests.browser.pages import ARTICLES_IN_ADMIN, REPORT, REPORTS, STATISTICS

BAR = ".hitcount-bars .hitcount-front"
CELLS = "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
STYLE = "(element, name) => getComputedStyle(element)[name]"


@pytest.fixture(params=REPORTS.values(), ids=REPORTS)
def report(request):
    return request.param


def test_statistics_are_a_link_on_the_form_of_an_article(page):
    page.goto(ARTICLES_IN_ADMIN)
    follow(page.get_by_role("link", name="How to lose count"))
    follow(page.get_by_role("link", name="Statistics"))

    assert page.url.endswith(STATISTICS)
    assert "How to lose count" in page.title()


def test_toggle_of_the_admin_makes_a_chart_dark(report, page):
    page.goto(report)
    body, bar = page.locator("body"), page.locator(BAR).first
    light = [body.evaluate(STYLE, "backgroundColor"), bar.evaluate(STYLE, "fill")]
    page.get_by_role("button", name="Toggle theme").click()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(body).not_to_have_css("background-color", light[0])
    expect(bar).not_to_have_css("fill", light[1])
    assert violations(page) == []


def test_bar_shows_its_value_on_hover_and_by_arrow_keys(report, page):
    page.goto(report)
    figures = page.locator(".hitcount-chart details tbody tr").first.locator("td").first
    columns = page.locator(".hitcount-column")
    first, second = columns.nth(0), columns.nth(1)
    assert figures.text_content() == first.locator("strong").text_content()

    first.hover()
    expect_shown(first)
    expect_hidden(second)

    page.mouse.move(0, 0)
    first.locator("input").focus()
    page.keyboard.press("ArrowRight")
    expect_shown(second)
    expect_hidden(first)


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("days", "#hits", 0),
        ("top", "section:has(#top-heading)", 2),
        ("rising", "section:has(#rising-heading)", 2),
        ("falling", "section:has(#falling-heading)", 2),
        ("refused", "section:has(#refused-heading)", 0),
    ],
)
def test_csv_has_the_figures_of_the_page(name, table, column, page):
    page.goto(f"{REPORT}?period=7")
    shown = page.locator(f"{table} tbody tr").evaluate_all(CELLS)
    with page.expect_download() as download:
        page.locator(f"a[href$='csv={name}']").click()
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]

    assert len(rows) > 2
    assert len(rows) > len(shown) or name != "top"
    assert [row["Hits"] for row in rows[: len(shown)]] == [
        figures[column].replace(",", "") for figures in shown
    ]


def test_statistics_of_chosen_days_are_a_file(page):
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    page.goto(STATISTICS)
    page.get_by_label("From", exact=True).fill(str(yesterday - timedelta(days=13)))
    page.get_by_label("To", exact=True).fill(str(yesterday))
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**first=**")
    shown = page.locator("#hits tbody tr").evaluate_all(CELLS)
    with page.expect_download() as download:
        page.locator("#hits .hitcount-csv").click()
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]

    assert len(rows) == 14
    assert [[row["Hits"]] for row in rows] == [[cell.replace(",", "") for cell in r] for r in shown]


def test_row_of_a_report_opens_the_same_days(page):
    page.goto(f"{REPORT}?period=7")
    row = page.locator("section:has(#top-heading) tbody tr").first
    hits = row.locator("td").nth(2).text_content()
    follow(row.locator("a"))

    assert page.locator("#hits .hitcount-column").count() == 7
    expect(page.locator(".hitcount-sum strong")).to_have_text(f"{hits} hits")


def test_article_is_compared_with_the_one_before(page):
    page.goto(STATISTICS)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**beside=**")
    chart = page.locator("#comparison")
    first = chart.locator(".hitcount-column").first
    first.hover()

    expect(first.locator(".hitcount-value")).to_have_css("opacity", "1")
    assert first.locator(".hitcount-value").inner_text().startswith("Day 1 ")
    keys = chart.locator(".hitcount-key").all_inner_texts()
    heads = page.locator(".hitcount-table .hitcount-title").all_inner_texts()
    assert [key.strip() for key in keys] == heads
    assert heads[0] == "How to lose count"
    follow(page.locator(".hitcount-table .hitcount-title a"))
    assert heads[1] in page.title()


def test_report_of_other_days_has_an_address_of_its_own(page):
    page.goto(REPORT)
    follow(page.get_by_role("link", name="7 days", exact=True))
    title, address = page.title(), page.url
    bars = page.locator(".hitcount-column").count()
    page.goto(address)

    assert address.endswith("?period=7")
    assert page.title() == title
    assert page.locator(".hitcount-column").count() == bars == 7


def _number(text):
    return int(text.replace(",", ""))


def test_report_leads_from_a_running_day_to_days_that_are_over(page):
    page.goto(f"{REPORT}?period=today")
    expect(page.get_by_text("Hits so far", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Falling")).to_have_count(0)
    follow(page.get_by_role("link", name="Last week", exact=True))

    expect(page.get_by_text("Today so far", exact=True)).to_be_visible()
    rows = page.locator("section:has(#falling-heading) tbody tr").evaluate_all(CELLS)
    falls = [_number(hits) - _number(before) for _, before, hits, _ in rows]
    assert falls == sorted(falls)
    assert falls[0] < falls[-1] < 0


def follow(link: Locator) -> None:
    """Click on a link, and wait until the page that it leads to is loaded."""
    with link.page.expect_event("load"):
        link.click()


def expect_shown(column: Locator) -> None:
    expect(column.locator(".hitcount-value")).to_have_css("opacity", "1")


def expect_hidden(column: Locator) -> None:
    expect(column.locator(".hitcount-value")).to_have_css("opacity", "0")
