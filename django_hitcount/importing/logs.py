"""Access logs in the combined format of Apache and nginx."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.apps import apps
from django.http import HttpRequest

from django_hitcount.conf import get_config
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import ADDRESS_LIMIT, REPEAT
from django_hitcount.counters.keys import check_counter
from django_hitcount.importing.csv_files import Files, name_of, open_text
from django_hitcount.importing.rows import Findings, SourceRow
from django_hitcount.importing.spool import Seen
from django_hitcount.importing.urls import Found, ObjectsOfUrls
from django_hitcount.refusals.consents import lacks_consent
from django_hitcount.refusals.registry import HitContext, find_refusal
from django_hitcount.visitors import read_origin

LINE = re.compile(
    r'(?P<address>\S+) \S+ .*?\[(?P<at>[^][]+)\] "'
    r'(?:(?P<method>[A-Z]+) (?P<url>\S+?)(?: (?:[^"\\]|\\.)*+)?|[^"]*+)"'
    r' (?P<status>\d{3}) \S+ "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)"'
)

ESCAPED = re.compile(r'\\(["\\])')

SHOWN_STATUSES = ("200", "304")
"""What is answered if a page was shown. With 304, the browser had it already."""

OTHER_STATUS = "a status other than 200 and 304"

NOT_SENT = "-"


@dataclass(frozen=True)
class LogFiles(Files):
    """
    Access logs in combined format, oldest first, perhaps compressed with gzip.

    Counts the requests that were answered with 200 or 304 and whose URL has an object: one that a
    DetailView shows, or that the function with the dotted path ``resolver`` returns for a request.
    Refuses the hits that record_hit() would refuse, with HITCOUNT["REFUSALS"] and the options of
    the counter. Visitors are told apart by address and browser: a log knows no sessions. Pass all
    logs of the same days at once.
    """

    kind = "log"

    resolver: str | None = None

    def rows(self, findings: Findings) -> Iterator[SourceRow]:
        """Yield a row for each request for an object."""
        counter = check_counter(self.counter)
        reader = _Reader(counter, ObjectsOfUrls(self.resolver, findings), findings)
        with closing(reader):
            for path in map(Path, self.paths):
                with open_text(path) as file:
                    for number, line in enumerate(file, 1):
                        if row := reader.read(f"{name_of(path)}, line {number}", line):
                            yield row


class _Reader:
    """Reads the lines of logs, and remembers visitors and addresses."""

    def __init__(self, counter: str, objects: ObjectsOfUrls, findings: Findings) -> None:
        self._counter = counter
        self._options = get_config().counters[counter]
        self._objects = objects
        self._findings = findings
        self._seen = Seen()
        self._has_users = apps.is_installed("django.contrib.auth")

    def close(self) -> None:
        self._seen.close()

    def read(self, place: str, line: str) -> SourceRow | None:
        """Return the row of a line: a hit, or why it is refused; None if it has no object."""
        found = LINE.match(line)
        at = _parse_moment(found["at"]) if found else None
        if not found or at is None:
            if line.strip():
                self._findings.add_problem(place, f"not in combined format: {line.strip()[:80]!r}")
            return None
        if found["status"] not in SHOWN_STATUSES or not found["url"]:
            self._findings.skipped[OTHER_STATUS] += 1
            return None
        request = self._make_request(found)
        obj = self._objects.find(found["url"], place, request)
        if obj is None:
            return None
        day = day_of(at)
        refusal = find_refusal(HitContext(request, obj.obj, self._counter))
        hits, visitors = 0, 0
        if not refusal:
            refusal, visitors = self._check_visitor(request, obj, day, int(at.timestamp()))
            hits = 0 if refusal else 1
        return SourceRow(place, obj.key, self._counter, day, hits, visitors, refusal)

    def _make_request(self, found: re.Match[str]) -> HttpRequest:
        request = HttpRequest()
        request.method = found["method"]
        request.META = {"REMOTE_ADDR": found["address"], "REQUEST_METHOD": found["method"]}
        for header, value in (("USER_AGENT", found["agent"]), ("REFERER", found["referer"])):
            text = ESCAPED.sub(r"\1", value)
            if text not in (NOT_SENT, ""):
                request.META[f"HTTP_{header}"] = text
        if self._has_users:
            from django.contrib.auth.models import AnonymousUser

            request.user = AnonymousUser()
        return request

    def _check_visitor(
        self, request: HttpRequest, obj: Found, day: datetime.date, moment: int
    ) -> tuple[str | None, int]:
        """
        Return why the hit of a visitor is refused, if it is, and 1 if the visitor is new that day.

        As seen_visitors.refuse_repeats() does, but by the clock of the log.
        """
        options = self._options
        if not options.needs_origin or lacks_consent(request, self._counter):
            return None, 0
        origin = read_origin(request, self._counter)
        if origin is None:
            return None, 0
        of_object, limited = obj.key, None
        if options.per_address and origin.address:
            repeat = options.repeat
            interval = moment // repeat if isinstance(repeat, int) else day.isoformat()
            limited = ("address", *of_object, interval, origin.address)
            if self._seen.count(*limited) >= options.per_address:
                return ADDRESS_LIMIT, 0
        counts, is_new = True, False
        if origin.identity:
            visitor = (*of_object, origin.identity)
            if isinstance(options.repeat, int):
                counts = self._seen.is_due(moment, options.repeat, "repeat", *visitor)
            if options.keeps_seen_visitors:
                is_new = self._seen.is_new("day", day, *visitor)
                counts = counts and (options.repeat != "daily" or is_new)
        if counts and limited:
            self._seen.add(*limited)
        return None if counts else REPEAT, int(is_new)


@lru_cache(maxsize=1024)
def _parse_moment(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        return None
