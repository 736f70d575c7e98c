"""The pages that every test of pages looks at, by name."""

from __future__ import annotations

ARTICLE = "/how-to-lose-count"
REPORT = "/admin/django_hitcount/hitslot/"

PAGES = {
    "list": "/?order=popular",
    "article": ARTICLE,
    "about": "/-/pages/about",
}
