"""The options of PAGES: how django_hitcount.pages turns requests into pages."""

from __future__ import annotations

from dataclasses import dataclass

from django_hitcount.conf import kinds
from django_hitcount.conf.declaring import dict_of, setting

PREFIXES = kinds.list_of(
    kinds.check_item(lambda item: isinstance(item, str) and item.startswith("/"), "prefix"),
    'Set it to a list of the beginnings of paths: ["/admin/"].',
    of_item='Begin it with a slash: "/admin/".',
)

NAMES = kinds.list_of(
    kinds.check_text, 'Set it to a list of names: ["page"].', of_item="Use a string."
)


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Which requests are views of a page, and of which page."""

    counter: str = setting("views", kinds.TEXT)
    """The counter of pages and of the whole site: the name of one in ``COUNTERS``."""

    site_counters: tuple[str, ...] = setting([], NAMES)
    """Further counters of the whole site, such as one whose visitors are browsers."""

    exclude: tuple[str, ...] = setting(["/admin/"], PREFIXES)
    """Paths that begin with one of these are not counted, not even for the whole site."""

    query: tuple[str, ...] = setting([], NAMES)
    """The parameters of a query that make a page of its own. All others are dropped."""

    strip_slash: bool = setting(False, kinds.FLAG)
    """Whether a path with a slash at its end is the same page as the one without."""

    lower_case: bool = setting(False, kinds.FLAG)
    """Whether paths that differ in case are the same page."""

    new_per_hour: int = setting(1000, kinds.MANY)
    """How many new paths become pages in an hour, over all processes."""

    not_found: str | None = setting(None, kinds.or_none(kinds.TEXT))
    """The counter for paths that were answered with 404. None: they are not counted."""


PAGES = dict_of(PageOptions, 'Set it to a dict: {"exclude": ["/admin/"]}.')
