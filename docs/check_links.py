"""
Follow the links of the built site to its own pages, sections and pictures.

Usage: python docs/check_links.py SITE
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The ids of a page, and what it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def find_broken(site: Path) -> list[str]:
    """Return the links that lead to no file or section of ``site``, with the pages they are on."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = path.parent / unquote(address.path) if address.path else path
            section = unquote(address.fragment)
            found = pages.get(target.resolve())
            if not target.exists() or (section and found and section not in found.ids):
                broken.append(f"{path.relative_to(site.resolve())}: {link}")
    if not pages:
        broken.append(f"{site}: no pages")
    return sorted(broken)


if __name__ == "__main__":
    broken = find_broken(Path(sys.argv[1]))
    print("\n".join(broken) or "All links within the site lead somewhere.")
    sys.exit(bool(broken))
