"""The admin's pages in other languages, one of which is written from right to left."""

from __future__ import annotations

import pytest

from tests.browser.accessibility import violations
from tests.browser.pages import PAGES_OF_ADMIN, REPORT

NARROW = 400
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.mark.parametrize(
    ("language", "direction", "heading"),
    [
        ("de", "ltr", "Zugriffe pro Tag"),
        ("fr", "ltr", "Consultations par jour"),
        ("es", "ltr", "Accesos por día"),
        ("ar", "rtl", "الزيارات في اليوم"),
    ],
)
def test_report_speaks_the_language_of_the_browser(new_context, language, direction, heading):
    page = new_context(language=language).new_page()
    page.goto(REPORT)

    root = page.locator("html")
    assert (root.get_attribute("lang"), root.get_attribute("dir")) == (language, direction)
    assert heading in page.locator("#content").inner_text()


@pytest.mark.parametrize("language", ["de", "ar"])
@pytest.mark.parametrize("path", PAGES_OF_ADMIN.values(), ids=PAGES_OF_ADMIN)
def test_page_fits_and_is_accessible(new_context, path, language):
    page = new_context(language=language, width=NARROW).new_page()
    page.goto(path)

    assert not page.evaluate(SIDEWAYS)
    assert violations(page) == []
