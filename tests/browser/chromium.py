"""The Chromium of the system, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.demo_site import DemoSite

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "Chromium is not installed. Install it (Debian: apt-get install chromium)."
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36"
"""Headless Chromium says that it is headless, and would be refused as a bot."""

HANGS_MILLISECONDS = 180_000
"""However busy the machine is, a page that is not ready by then never will be."""

expect.set_options(timeout=HANGS_MILLISECONDS)


class ChromiumMissing(Exception):
    """No Chromium is installed."""


def find_chromium() -> str:
    for name in NAMES:
        if program := shutil.which(name):
            return program
    raise ChromiumMissing(MISSING)


@contextmanager
def run_chromium() -> Iterator[Browser]:
    program = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, timeout=HANGS_MILLISECONDS)
        yield browser
        browser.close()


def open_context(
    browser: Browser,
    site: DemoSite,
    *,
    width: int = 1200,
    height: int = 800,
    is_dark: bool = False,
    language: str = "en-GB",
) -> BrowserContext:
    """Open a window of its own, with no cookies."""
    context = browser.new_context(
        base_url=site.address,
        color_scheme="dark" if is_dark else "light",
        locale=language,
        reduced_motion="reduce",
        user_agent=USER_AGENT,
        viewport={"width": width, "height": height},
    )
    context.set_default_timeout(HANGS_MILLISECONDS)
    return context


def log_in(context: BrowserContext, site: DemoSite) -> None:
    page = context.new_page()
    page.goto("/admin/login/?next=/admin/")
    page.locator("[name=username]").fill(site.user)
    page.locator("[name=password]").fill(site.password)
    page.locator("#login-form [type=submit]").click()
    page.locator("#logout-form").wait_for()
    page.close()
