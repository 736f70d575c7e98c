"""Count a page that was answered, and the whole site, in one round trip."""

from __future__ import annotations

import logging

from django.core.exceptions import SuspiciousOperation
from django.db.models import Model
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from django_hitcount.conf import PATH_MAX_LENGTH, get_config
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import PATH_LIMIT, NewHits
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.waits import CurrentPage
from django_hitcount.pages.models import Page, WholeSite, find_page, make_page
from django_hitcount.pages.paths import may_become_page, path_of, site_id_of
from django_hitcount.recording import record_new_hits
from django_hitcount.refusals.registry import HitContext, find_refusal

HTML_TYPES = ("text/html", "application/xhtml+xml")

OK, NOT_MODIFIED, NOT_FOUND = 200, 304, 404

logger = logging.getLogger("django_hitcount")


def may_be_page(request: HttpRequest, response: HttpResponseBase) -> bool:
    """
    Return whether a response may be a page that counts: HTML that was answered to a GET.

    A 304 of Django has no content type. It may be one, if its path is known.
    """
    if request.method != "GET":
        return False
    status = response.status_code
    if status == NOT_FOUND and get_config().pages.not_found is None:
        return False
    if status not in (OK, NOT_MODIFIED, NOT_FOUND):
        return False
    content_type = response.get("Content-Type", "").lower()
    return content_type.startswith(HTML_TYPES) or (status == NOT_MODIFIED and not content_type)


def record_page(request: HttpRequest, response: HttpResponseBase) -> None:
    """
    Count a response for which may_be_page() is true. Logs errors.

    With Redis, costs one round trip for a page that this process has counted within five minutes.
    Costs a query for another one; for a new one also a round trip, a transaction of one statement
    and a query. Without Redis, costs two statements, BEGIN and COMMIT in place of the round trip,
    and what visitors cost, see record_hit(). So does each of ``site_counters``.
    """
    try:
        path = path_of(request)
        if path is not None:
            with CurrentPage(request):
                _record(request, response, path)
    except (BufferUnavailable, SuspiciousOperation, *DATABASE_ERRORS) as exc:
        logger.error("A page is not counted: %s", exc)


def _record(request: HttpRequest, response: HttpResponseBase, path: str) -> None:
    options, site_id = get_config().pages, site_id_of(request)
    is_missing = response.status_code == NOT_FOUND
    counter = str(options.not_found if is_missing else options.counter)
    site, shown = WholeSite(site_id), Page(site_id=site_id, path=path)
    if "Content-Type" not in response:
        known = find_page(site_id, path, may_be_new=False)
        if known is None:
            return  # As far as this site knows, it is no page.
        shown = known
    of_site_alone = [] if is_missing else sorted({*options.site_counters} - {counter})
    for name in (*of_site_alone, counter):
        hit = NewHits(counter_key(site, counter=name), day_of(), 1)
        found: list[tuple[Model, NewHits]] = []
        if refusal := find_refusal(HitContext(request, shown, name)):
            found.append((shown, hit._replace(refusal=refusal)))
        else:
            if not is_missing:
                # Refused is a view whose page is: the site is repeated by each further page.
                found.append((site, hit._replace(counts_refusal=False)))
            if name == counter:
                found += _make_hit_of_page(shown, hit, "404" if is_missing else "pages")
        objs, hits = [obj for obj, _ in found], [hit for _, hit in found]
        record_new_hits(objs, hits, request, with_totals=False)


def _make_hit_of_page(shown: Page, hit: NewHits, purpose: str) -> list[tuple[Model, NewHits]]:
    """
    Return the page and the hit on it; none if it cannot be read now.

    Makes the page if there is none. The hit is refused if the path is too long, or one too many.
    """
    page = shown if shown.pk else None
    try:
        if page is None and len(shown.path) <= PATH_MAX_LENGTH:
            page = find_page(shown.site_id, shown.path)
            if page is None and may_become_page(purpose):
                page = make_page(shown.site_id, shown.path)
        if page is None:
            return [(shown, hit._replace(refusal=PATH_LIMIT))]
        return [(page, hit._replace(key=counter_key(page, counter=hit.key.counter)))]
    except (BufferUnavailable, *DATABASE_ERRORS) as exc:
        logger.error("A page is only counted for the whole site: %s", exc)
        return []
