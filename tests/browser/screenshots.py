"""
Makes the pictures of the docs: ``python -m tests.browser.screenshots``.

They show the example site with its made-up traffic, whose days are those before today.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Browser

from tests.browser.chromium import log_in, open_context, run_chromium
from tests.browser.demo_site import DemoSite, run_demo
from tests.browser.pages import ARTICLE, ARTICLES_IN_ADMIN, REPORT, STATISTICS
from tests.demo_process import ROOT

IMAGES = ROOT / "docs" / "images"
COLORS = 64
"""A picture of text and flat shapes looks the same with few colours, and is a third as large."""


class Picture(NamedTuple):
    name: str
    path: str
    width: int
    height: int
    is_dark: bool = False
    language: str = "en-GB"

    @property
    def window(self) -> dict[str, Any]:
        return {
            "width": self.width,
            "height": self.height,
            "is_dark": self.is_dark,
            "language": self.language,
        }


PICTURES = [
    Picture("example", "/?order=popular", 1100, 760),
    Picture("example-article", ARTICLE, 760, 900),
    Picture("admin-report", f"{REPORT}?period=30", 1100, 1000),
    Picture("admin-report-dark", f"{REPORT}?period=30", 1100, 1000, is_dark=True),
    Picture("admin-report-german", f"{REPORT}?period=30", 900, 700, language="de-DE"),
    Picture("admin-statistics-arabic", STATISTICS, 900, 700, is_dark=True, language="ar"),
    Picture("admin-list", ARTICLES_IN_ADMIN, 1100, 640),
    Picture("admin-statistics", STATISTICS, 1100, 1000),
]


def take(browser: Browser, site: DemoSite, pictures: Iterable[Picture]) -> None:
    for picture in pictures:
        context = open_context(browser, site, **picture.window)
        log_in(context, site)
        page = context.new_page()
        page.goto(picture.path)
        png = Image.open(BytesIO(page.screenshot()))
        few_colors = png.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
        few_colors.save(IMAGES / f"{picture.name}.png", optimize=True)
        context.close()


if __name__ == "__main__":
    with run_chromium() as browser, run_demo() as site:
        take(browser, site, PICTURES)
