"""What axe-core finds wrong with a page."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

axe = Axe()


def violations(page: Page) -> list[str]:
    """Describe each violation of WCAG or of good practice, with the elements concerned."""
    found = axe.run(page).response["violations"]
    return [
        f"{violation['id']}: {violation['help']}: {[node['html'] for node in violation['nodes']]}"
        for violation in found
    ]
