"""The pages that every test of pages looks at, by name."""

from __future__ import annotations

ARTICLE = "/how-to-lose-count"
ARTICLES_IN_ADMIN = "/admin/blog/article/"
FORM = "/admin/blog/article/1/change/"
STATISTICS = "/admin/blog/article/6/statistics/"
COMPARISON = f"{STATISTICS}?period=7&beside="
REPORT = "/admin/django_hitcount/hitslot/"
CORRECTIONS = "/admin/django_hitcount/correction/"

PAGES_OF_SITE = {
    "list": "/?order=popular",
    "article": ARTICLE,
    "about": "/-/pages/about",
    "cached": "/-/articles/2/cached",
}

REPORTS = {"statistics": STATISTICS, "report": REPORT}
"""Pages with a chart."""

PAGES_OF_ADMIN = {
    "articles": ARTICLES_IN_ADMIN,
    "form": FORM,
    "corrections": CORRECTIONS,
    "report of today": f"{REPORT}?period=today",
    "report without hits": f"{REPORT}?first=2020-01-01&last=2020-01-31",
    "comparison": COMPARISON,
    "unknown object": f"{STATISTICS}?beside=0&period=x",
    **REPORTS,
}

PAGES = PAGES_OF_SITE | PAGES_OF_ADMIN
