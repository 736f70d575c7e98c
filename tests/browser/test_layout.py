"""What fits on a screen or on paper, and what can be told apart."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.pages import CORRECTIONS, REPORT, STATISTICS

IS_CUT = "element => element.scrollWidth > element.clientWidth"
LINES_OF_WORD = """(link, word) => {
    const range = document.createRange();
    const start = link.textContent.indexOf(word);
    range.setStart(link.firstChild, start);
    range.setEnd(link.firstChild, start + word.length);
    return range.getClientRects().length;
}"""

LONG_WORD = "https://example.org/" + "x" * 180

@pytest.fixture(scope="module")
def correction_with_long_word(browser, site, session_of_admin):
    """Add a hit for a reason that is one long word."""
    context = browser.new_context(base_url=site.address, storage_state=session_of_admin)
    page = context.new_page()
    page.goto(STATISTICS)
    page.get_by_label("Hits:").fill("1")
    page.get_by_label("Reason:").fill(LONG_WORD)
    page.get_by_role("button", name="Correct hits").click()
    page.get_by_text("Added 1 hit on").wait_for()
    context.close()


def test_correction_with_a_long_word_fits(correction_with_long_word, page):
    page.goto(CORRECTIONS)
    expect(page.get_by_role("cell", name=LONG_WORD)).to_be_visible()
    assert not page.locator(".results").evaluate(IS_CUT)

    page.goto(STATISTICS)
    table = page.get_by_role("region", name="Corrections")
    expect(table.get_by_role("cell", name=LONG_WORD)).to_be_visible()
    assert not table.evaluate(IS_CUT)


def test_page_of_a_correction_wraps_a_long_word(correction_with_long_word, page):
    page.goto(f"{CORRECTIONS}1/change/")

    assert not page.locator(".field-reason").evaluate(IS_CUT)


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


def test_printed_report_says_what_it_is_about(page):
    page.goto(f"{REPORT}?counter=downloads&model=blog.article")
    subject = page.get_by_text("Counter: Downloads. Model: Articles. Days: ")
    expect(subject).to_be_hidden()
    page.emulate_media(media="print")

    expect(subject).to_be_visible()
    expect_no_controls(page.locator(".hitcount-report"))


def test_printed_statistics_have_no_controls(page):
    page.goto(STATISTICS)
    page.emulate_media(media="print")

    expect_no_controls(page.locator(".hitcount-statistics"))


def expect_no_controls(content: Locator) -> None:
    for control in (".hitcount-periods", "form"):
        expect(content.locator(control)).to_be_hidden()
