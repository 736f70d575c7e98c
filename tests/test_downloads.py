"""A file that somebody fetches counts once, in however many requests."""

from __future__ import annotations

import io

import pytest
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotModified,
    HttpResponseRedirect,
)
from django.middleware.http import ConditionalGetMiddleware
from django.test import RequestFactory

from django_hitcount.downloads import begins_download, has_first_part
from django_hitcount.exceptions import InvalidArgument, UnsavedObject
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import Counter
from django_hitcount.reading import get_hits
from django_hitcount.refusals import bot
from django_hitcount.status import get_refused_hits
from django_hitcount.views import acount_download, count_download
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 1_000_000
TENTH = SIZE // 10
PIECES = [f"bytes={n * TENTH}-{(n + 1) * TENTH - 1}" for n in range(10)]

FIRST_BYTES = "bytes=0-1"

SEQUENCES = {
    "a browser": [""],
    "Safari plays a video": [FIRST_BYTES, f"bytes=0-{SIZE - 1}", "bytes=65536-999999"],
    "Safari plays a video whose index is at its end": [
        FIRST_BYTES,
        "bytes=0-65535",
        "bytes=917504-999999",
        "bytes=65536-917503",
    ],
    "Chrome's viewer of PDF files": ["", "bytes=65536-131071", "bytes=934464-999999"],
    "Chromium plays a sound, and its reader jumps three times (recorded)": [
        "bytes=0-",
        "bytes=26443776-39999999",
        "bytes=26443776-39999999",
        "bytes=10551296-26443775",
        "bytes=35258368-39999999",
        "bytes=35258368-39999999",
        "bytes=10878976-26443775",
        "bytes=35323904-35454975",
        "bytes=35323904-39999999",
    ],
    "Firefox goes on after a pause": ["", "bytes=400000-"],
    "curl -C - goes on (recorded)": ["", "bytes=7336693-"],
    "wget -c goes on (recorded)": ["", "bytes=5529088-"],
    "ten pieces at once": PIECES,
    "ten pieces in another order": PIECES[::-1],
    "a download manager that asks for the size": ["bytes=0-0", *PIECES],
    "a reader of ZIP files that wants it all": ["bytes=-22", "bytes=-65557", "bytes=0-999977"],
    "several ranges in one request": ["bytes=0-99,500-599, -100", "bytes=100-499,600-999899"],
    "several ranges, the first one of which is short": ["bytes=0-1,2-999999"],
    "a probe, and several ranges": ["bytes=0-0,-1", "bytes=-500,0-0", "bytes=1-999499"],
    "units in capitals": ["Bytes=0-99", "BYTES = 100-"],
}
"""
The Range headers of programs that fetch one file; an empty text is none.

Those that say so were recorded of the programs. The others follow what is known of the programs.
"""

NOTHING = {
    "a probe of one byte": ["bytes=0-0"],
    "Safari's probe": [FIRST_BYTES],
    "a probe of both ends": ["bytes=0-0,-1"],
    "two ranges that are a probe": ["bytes=0-0,1-1"],
    "the end only": ["bytes=-500"],
    "the rest only": ["bytes=500-"],
}


@pytest.fixture
def article(buffer) -> Article:
    return Article.objects.create(title="Tea")


def sent_by_django() -> FileResponse:
    return FileResponse(io.BytesIO(b"tea"))


def sent_by_nginx() -> HttpResponse:
    return HttpResponse(headers={"X-Accel-Redirect": "/protected/tea.pdf"})


def sent_by_a_store() -> HttpResponse:
    return HttpResponseRedirect("https://files.example.com/tea.pdf?signature=5")


SENDERS = [sent_by_django, sent_by_nginx, sent_by_a_store]


def request(range_: str = "", *, method: str = "GET", **headers: str) -> HttpRequest:
    given = {"Range": range_, **headers} if range_ else headers
    return RequestFactory(headers={**BROWSER, **given}).generic(method, "/tea.pdf")


def fetch(article: Article, *requests: HttpRequest, send=sent_by_django) -> int:
    """The downloads after these requests."""
    for each in requests:
        response = send()
        assert count_download(article, each, response) is response
    return get_hits(article, counter="downloads")


@pytest.mark.parametrize("send", SENDERS)
@pytest.mark.parametrize("ranges", SEQUENCES.values(), ids=SEQUENCES)
def test_a_file_counts_once(article, ranges, send):
    assert fetch(article, *map(request, ranges), send=send) == 1
    assert fetch(article, *map(request, ranges), send=send) == 2


@pytest.mark.parametrize("ranges", NOTHING.values(), ids=NOTHING)
def test_who_does_not_fetch_the_file_is_neither_counted_nor_refused(article, ranges):
    assert fetch(article, *map(request, ranges)) == 0
    flush_hits()
    assert get_refused_hits(days=1) == []


@pytest.mark.parametrize(
    "header",
    [
        "items=5-6",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=9-5",
        "bytes=5",
        "bytes=5-6;7-8",
        "bytes=500-,",
        f"bytes={'9' * 5000}-",
        "5-",
        f"bytes={' ' * 100_000}",
        "bytes=5 - 6",
    ],
)
def test_a_server_sends_all_of_it_if_a_range_is_wrong(header):
    assert has_first_part(header)


@pytest.mark.parametrize("send", SENDERS)
def test_head_is_no_download(article, send):
    assert fetch(article, request(method="HEAD"), send=send) == 0
    assert not begins_download(request(method="HEAD"), send())
    assert fetch(article, request(method="HEAD"), request(), send=send) == 1


def test_post_is_a_download_if_the_refusals_let_it_be(article):
    made = request("bytes=5-", method="POST")
    assert fetch(article, made) == 0
    count_download(article, made, sent_by_django(), refusals=[])

    assert get_hits(article, counter="downloads") == 1


@pytest.mark.parametrize("status", [301, 304, 400, 403, 404, 410, 412, 416, 500, 503])
def test_answer_without_the_file_is_no_download(article, status):
    assert fetch(article, request(), send=lambda: HttpResponse(status=status)) == 0


@pytest.mark.parametrize("status", [200, 206])
def test_answer_with_the_file_is_one(article, status):
    assert fetch(article, request(), send=lambda: HttpResponse(status=status)) == 1


ETAG = '"tea-1"'
DATE = "Tue, 10 Mar 2026 11:00:00 GMT"
EARLIER = "Mon, 09 Mar 2026 11:00:00 GMT"


class TestCopy:
    """The client asks whether its copy is still current."""

    @pytest.mark.parametrize(
        "headers", [{"If-None-Match": ETAG}, {"If-Modified-Since": DATE}], ids=["etag", "date"]
    )
    def test_front_server_will_say_that_it_is(self, article, headers):
        """Django does not see the 304."""
        assert fetch(article, request(), request(**headers), send=sent_by_nginx) == 1

    @pytest.mark.parametrize(
        ("headers", "downloads"),
        [
            ({"If-None-Match": ETAG}, 0),
            ({"If-None-Match": '"tea-0"'}, 1),
            ({"If-Modified-Since": DATE}, 0),
            ({"If-Modified-Since": EARLIER}, 1),
            ({"If-None-Match": ETAG, "If-Modified-Since": EARLIER}, 0),
            ({"If-None-Match": '"tea-0"', "If-Modified-Since": DATE}, 1),
            ({"If-Match": ETAG}, 1),
            ({"If-Match": '"tea-0"'}, 0),
            ({"If-Unmodified-Since": EARLIER}, 0),
            ({"If-Range": ETAG}, 1),
        ],
    )
    def test_django_knows(self, article, headers, downloads):
        """Its ConditionalGetMiddleware answers after the view."""
        asked = request(**headers)

        def view(each: HttpRequest) -> HttpResponse:
            answer = HttpResponse("tea", headers={"ETag": ETAG, "Last-Modified": DATE})
            return count_download(article, each, answer)

        answer = ConditionalGetMiddleware(view)(asked)
        assert (answer.status_code == 200) == bool(downloads)
        assert get_hits(article, counter="downloads") == downloads

    @pytest.mark.parametrize(
        ("headers", "downloads"),
        [
            ({"If-None-Match": '"of nginx"'}, 0),
            ({"If-None-Match": '"of nginx"', "If-Modified-Since": DATE}, 0),
            ({"If-None-Match": '"of nginx"', "If-Modified-Since": EARLIER}, 1),
        ],
    )
    def test_front_server_knows_the_etag_and_django_the_date(self, article, headers, downloads):
        def send() -> HttpResponse:
            redirect = {"X-Accel-Redirect": "/protected/tea.pdf"}
            return HttpResponse(headers={**redirect, "Last-Modified": DATE})

        assert fetch(article, request(**headers), send=send) == downloads

    def test_view_knows(self, article):
        asked = request(**{"If-None-Match": ETAG})

        assert fetch(article, asked, send=HttpResponseNotModified) == 0


def test_refusals_apply_to_the_request_that_counts(article):
    program = {"User-Agent": "curl/8.5.0"}
    assert fetch(article, request(**program), request("bytes=5-", **program)) == 0
    flush_hits()
    assert [(row.refusal, row.hits) for row in get_refused_hits(days=1)] == [("bot", 1)]

    count_download(article, request(**program), sent_by_django(), refusals=[])
    count_download(article, request(**program), sent_by_django(), refusals=[bot])
    assert get_hits(article, counter="downloads") == 1


def test_another_counter(article):
    count_download(article, request(), sent_by_django(), counter="views")

    assert article.hits == 1
    with pytest.raises(InvalidArgument, match="'shares'"):
        count_download(article, request(), sent_by_django(), counter="shares")


def test_file_that_is_no_object(buffer):
    brochure = Counter("brochure.pdf")
    for range_ in PIECES:
        count_download(brochure, request(range_), sent_by_django())

    assert get_hits(brochure, counter="downloads") == 1


def test_object_that_is_not_saved():
    with pytest.raises(UnsavedObject):
        count_download(Article(), request(), sent_by_django())


@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
async def test_async_twin(buffer):
    article = await Article.objects.acreate(title="Tea")
    for range_ in PIECES:
        await acount_download(article, request(range_), sent_by_nginx())

    assert await article.aget_hits(counter="downloads") == 1


def test_missing_file_raises_as_before(article):
    def missing() -> HttpResponse:
        raise Http404

    with pytest.raises(Http404):
        fetch(article, request(), send=missing)
    assert fetch(article) == 0
