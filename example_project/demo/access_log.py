"""Reads page requests from an access log in Apache's combined format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

from blog.paths import clean_path, is_reserved

QUOTED = r'"((?:[^"\\]|\\.)*)"'
LINE = re.compile(rf"(\S+) \S+ .+? \[([^\]]*)\] {QUOTED} (\d{{3}}) \S+ {QUOTED} {QUOTED}")
MOMENT = "%d/%b/%Y:%H:%M:%S %z"
REQUEST = re.compile(r"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (\S.*?)(?: HTTP/[\d.]+)?")
SHOWN_STATUSES = frozenset({"200", "304"})
NOT_SENT = "-"

# What a page is made of, what is downloaded rather than read, and what only programs read.
OTHER_THAN_PAGES = {
    "png", "jpg", "jpeg", "gif", "webp", "avif", "svg", "svgz", "ico", "bmp", "tif", "tiff",
    "css", "xsl", "xslt", "js", "mjs", "map", "ttf", "otf", "eot", "woff", "woff2",
    "mp3", "mp4", "ogg", "ogv", "wav", "webm", "avi", "mov", "swf", "flv",
    "zip", "gz", "tgz", "bz2", "xz", "7z", "tar", "rar", "jar", "war", "gem", "whl", "deb", "rpm",
    "dmg", "iso", "exe", "msi", "bin", "pyc", "pcap",
    "pdf", "ps", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "csv",
    "xml", "rss", "atom", "rdf", "json", "webmanifest",
}  # fmt: skip
FILES_FOR_PROGRAMS = frozenset({"robots.txt", "humans.txt", "ads.txt", "security.txt"})
FEED_SEGMENTS = frozenset({"feed", "feeds"})
FEED_PARAMETERS = frozenset({"flav", "feed", "format"})
FEED_FORMATS = ("rss", "atom", "rdf")


@dataclass(frozen=True, slots=True)
class PageRequest:
    method: str
    path: str
    """The article's path, as blog.paths writes it: "" is the front page."""

    address: str
    user_agent: str
    """Empty if the visitor sent none."""

    at: datetime


@dataclass(slots=True)
class AccessLog:
    page_requests: list[PageRequest] = field(default_factory=list)
    others: int = 0
    """Well-formed lines that are not page requests."""

    malformed: int = 0


def parse_log(lines: Iterable[str]) -> AccessLog:
    log = AccessLog()
    for line in lines:
        try:
            address, moment, *parts = _parts(line)
            at = datetime.strptime(moment, MOMENT)
        except ValueError:
            log.malformed += 1
            continue
        request = _page_request(address, at, *parts)
        if request is None:
            log.others += 1
        else:
            log.page_requests.append(request)
    return log


def _parts(line: str) -> Sequence[str]:
    """The client's address, the moment, the request, the status and the user agent."""
    match = LINE.match(line)
    if match is None:
        raise ValueError(line)
    return match.group(1, 2, 3, 4, 6)


def _page_request(
    address: str, at: datetime, request: str, status: str, agent: str
) -> PageRequest | None:
    match = REQUEST.fullmatch(request)
    if match is None or status not in SHOWN_STATUSES or not is_page(match[2]):
        return None
    user_agent = "" if agent == NOT_SENT else re.sub(r'\\(["\\])', r"\1", agent).strip()
    return PageRequest(match[1], article_path(match[2]), address, user_agent, at)


def is_page(target: str) -> bool:
    """True if a visitor reads it: a page.

    It is one unless the file's extension is one of OTHER_THAN_PAGES, the file is one of
    FILES_FOR_PROGRAMS, or it is a feed: its last segment says so, or its query does
    (`?flav=rss20`, `?feed=atom`).
    """
    path, query = _split(target)
    segments = [segment.lower() for segment in path.split("/") if segment]
    name = segments[-1] if segments else ""
    extension = name.rpartition(".")[2] if "." in name and not path.endswith("/") else ""
    return not (
        extension in OTHER_THAN_PAGES
        or name in FILES_FOR_PROGRAMS
        or name in FEED_SEGMENTS
        or _asks_for_feed(query)
    )


def article_path(target: str) -> str:
    """Which article a request is for: one for each path, whatever the query.

    `/blog` and `/blog/` are the same article, and `/a%20b` is `a b`. Upper and lower case differ.
    A path that the site needs itself moves aside: `/admin/x` is served as `/~admin/x`.
    """
    encoded, _ = _split(target)
    decoded = unquote_to_bytes(encoded.encode("latin-1")).decode("utf-8", "replace")
    path = clean_path(decoded)
    return f"~{path}" if is_reserved(path) else path


def _split(target: str) -> tuple[str, str]:
    if not target.startswith("/"):
        # A proxy's request names the whole address.
        parts = urlsplit(target)
        return parts.path, parts.query
    # Not urlsplit: it takes `//path` for the name of a host.
    path, _, query = target.partition("#")[0].partition("?")
    return path, query


def _asks_for_feed(query: str) -> bool:
    return any(
        name in FEED_PARAMETERS and value.lower().startswith(FEED_FORMATS)
        for name, value in parse_qsl(query)
    )
