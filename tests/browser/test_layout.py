"""What fits on a screen or on paper, and what can be told apart."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chromium import open_context
from tests.browser.pages import CORRECTIONS, REPORT, STATISTICS

BACKDROP = "element => getComputedStyle(element).backgroundColor"
EDGE = "element => getComputedStyle(element).stroke"
IS_CUT = "element => element.scrollWidth > element.clientWidth"
LINES_OF_WORD = """(link, word) => {
    const range = document.createRange();
    const start = link.textContent.indexOf(word);
    range.setStart(link.firstChild, start);
    range.setEnd(link.firstChild, start + word.length);
    return range.getClientRects().length;
}"""

LONG_WORD = "https://example.org/" + "x" * 180
LEAST_CONTRAST = 3
"""Of graphics: WCAG 2.2, success criterion 1.4.11."""


@pytest.fixture(scope="module")
def correction_with_long_word(browser, site, session_of_admin):
    """Add a hit for a reason that is one long word."""
    context = open_context(browser, site)
    context.add_cookies(session_of_admin["cookies"])
    page = context.new_page()
    page.goto(STATISTICS)
    page.get_by_label("Hits:").fill("1")
    page.get_by_label("Reason:").fill(LONG_WORD)
    page.get_by_role("button", name="Correct hits").click()
    page.get_by_text("Corrected Views of").wait_for()
    context.close()


def test_correction_with_a_long_word_fits(correction_with_long_word, page):
    page.goto(CORRECTIONS)
    expect(page.get_by_role("cell", name=LONG_WORD)).to_be_visible()
    assert not page.locator(".results").evaluate(IS_CUT)

    page.goto(STATISTICS)
    table = page.get_by_role("region", name="Corrections")
    expect(table.get_by_role("cell", name=LONG_WORD)).to_be_visible()
    assert not table.evaluate(IS_CUT)


def test_field_of_hits_shows_all_digits(page):
    page.goto(STATISTICS)
    field = page.get_by_label("Hits:")
    field.fill("-1000000000")

    assert not field.evaluate(IS_CUT)


def test_words_of_titles_are_not_broken_on_a_narrow_screen(new_context):
    page = new_context(width=320).new_page()
    page.goto(REPORT)
    links = page.get_by_role("link", name="What the beekeeper weighs").all()

    assert [link.evaluate(LINES_OF_WORD, "beekeeper") for link in links] == [1, 1]


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_what_falls_is_beside_what_rises_or_below_on_a_narrow_screen(is_dark, new_context):
    for width, is_beside in ((1200, True), (400, False)):
        page = new_context(width=width, is_dark=is_dark).new_page()
        page.goto(f"{REPORT}?period=7")
        rising, falling = (page.get_by_role("region", name=name) for name in ("Rising", "Falling"))
        boxes = [table.bounding_box() for table in (rising, falling)]

        assert (boxes[0]["y"] == boxes[1]["y"]) == is_beside
        for name in ("Most hits", "Rising", "Falling"):
            assert not page.get_by_role("region", name=name).evaluate(IS_CUT)


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_bars_of_the_period_before_can_be_seen(is_dark, new_context):
    page = new_context(is_dark=is_dark).new_page()
    page.goto(REPORT)
    edge = page.locator(".hitcount-behind").first.evaluate(EDGE)
    backdrop = page.locator("body").evaluate(BACKDROP)

    assert contrast(edge, backdrop) >= LEAST_CONTRAST


def test_printed_report_says_what_it_is_about(page):
    page.goto(f"{REPORT}?counter=downloads&model=blog.article")
    subject = page.get_by_text("Downloads of Articles, from ")
    expect(subject).to_be_hidden()
    expect_controls_on_screen_only(page.locator(".hitcount-report"))

    expect(subject).to_be_visible()


def test_printed_statistics_have_no_controls(page):
    page.goto(STATISTICS)

    expect_controls_on_screen_only(page.locator(".hitcount-statistics"))
    expect(page.locator("#hitcount-comparison")).to_be_hidden()


def expect_controls_on_screen_only(content: Locator) -> None:
    """Expect periods and forms, and none of them in print."""
    controls = [content.locator(".hitcount-periods"), *content.locator("form").all()]
    assert len(controls) > 1
    for control in controls:
        expect(control).to_be_visible()
    content.page.emulate_media(media="print")
    for control in controls:
        expect(control).to_be_hidden()


def contrast(color: str, other: str) -> float:
    """The contrast of two colours as WCAG defines it: from 1 to 21."""
    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """The relative luminance of "rgb(18, 18, 18)" or "color(srgb 0.1 0.1 0.1)"."""
    whole = 1 if "srgb" in color else 255
    shares = [float(number) / whole for number in re.findall(r"[\d.]+", color)[:3]]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
