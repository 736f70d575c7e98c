"""What the addresses of the beacon count, answer and refuse."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter

import pytest
import time_machine
from django.contrib.contenttypes.models import ContentType
from django.core.signing import Signer
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_hitcount import beacon_token, flush_hits, get_hits, record_hit
from django_hitcount.beacon import SALT, refused_tokens
from django_hitcount.db.tables import Admission
from django_hitcount.testing import override_hitcount
from tests.app.models import Article, Page, Photo, Plain
from tests.beacon.sending import send, send_text
from tests.browsers import BROWSER
from tests.tables import slot_sums
from tests.visiting import refused_today

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer, monkeypatch):
    # Without those that another test has left behind.
    monkeypatch.setattr(refused_tokens, "_amounts", Counter())
    monkeypatch.setattr(refused_tokens, "_written_at", time.monotonic())
    return Article.objects.create(title="Tea")


def image_of(token: str, **headers: str):
    return Client().get(f"/seen/{token}.gif", headers={**BROWSER, **headers})


def test_page_counts_each_token_once_and_gets_its_numbers(article):
    record_hit(article)
    token = beacon_token(article)
    shown = beacon_token(article, show="hits")

    response = send([token, token], [shown])

    assert response.status_code == 200
    assert response.json() == {"numbers": {shown: 2}}
    assert get_hits(article) == 2
    assert "no-store" in response["Cache-Control"]
    assert not response.cookies


def test_keys_of_all_types_count(article):
    objs = [
        article,
        Photo.objects.create(),
        Page.objects.create(path="/ü/"),
        Plain.objects.create(),
    ]

    send(objs)

    assert get_hits(objs) == dict.fromkeys(objs, 1)


def test_counters_and_visitors(article):
    with override_hitcount(COUNTERS={"views": {"visitors": True}, "downloads": {}}):
        shown = [beacon_token(article, show="visitors"), beacon_token(article, show="hits")]
        tokens = [beacon_token(article), beacon_token(article, counter="downloads")]
        numbers = send(tokens, shown).json()["numbers"]

        assert [numbers[token] for token in shown] == [1, 1]
        assert get_hits(article, counter="downloads") == 1


def test_view_that_is_sent_again_counts_once(article):
    shown = beacon_token(article, show="hits")
    answers = [send([article], [shown]).json() for _ in range(3)]
    send([article], view_id="another-view")
    flush_hits()

    assert answers == [{"numbers": {shown: 1}}] * 3
    assert article.hits == 2
    assert refused_today() == {("views", "repeat"): 2}


def test_token_that_shows_a_number_counts_nothing(article):
    shown = beacon_token(article, show="hits")

    assert send([shown], [shown]).json() == {"numbers": {shown: 0}}
    assert image_of(shown).status_code == 200
    assert article.hits == 0


def test_token_of_a_deleted_object_makes_no_row(article):
    token = beacon_token(article)
    article.delete()

    assert send([token]).status_code == 200
    assert image_of(token).status_code == 200
    flush_hits()
    assert slot_sums([Article(pk=1)]) in ({}, {Article(pk=1): 0})


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": "", "Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "", "Origin": "null"},
        {"Sec_Fetch_Site": "", "Origin": "http://testserver.evil.example"},
        {"Sec_Fetch_Mode": "navigate"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "https://www.example.com:8443"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "http://www.example.com"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "https://www.example.com.evil.example"},
    ],
)
def test_page_of_another_site_counts_nothing(article, headers):
    with override_hitcount(BEACON_ORIGINS=["https://www.example.com"]):
        response = send([article], **headers)

    assert response.status_code == 403
    assert article.hits == 0
    refused_tokens.write()
    flush_hits()
    assert refused_today() == {("views", "other_site"): 1}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec_Fetch_Site": "", "Sec_Fetch_Mode": ""},
        {"Sec_Fetch_Site": "", "Origin": "https://testserver"},
    ],
)
def test_page_of_this_site_counts(article, headers):
    assert send([article], **headers).status_code == 200
    assert article.hits == 1


def test_page_of_a_named_site_counts_and_may_read_the_answer(article):
    with override_hitcount(BEACON_ORIGINS=["https://www.example.com"]):
        response = send([article], Sec_Fetch_Site="cross-site", Origin="https://www.example.com")

    assert response["Access-Control-Allow-Origin"] == "https://www.example.com"
    assert "Origin" in response["Vary"]
    assert article.hits == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        "[" * 32_000,
        b"\xff\xfe",
        '{"id": "a1b2c3d4", "hit": [1], "show": []}',
        '{"id": "a1b2c3d4", "hit": "tokens", "show": []}',
        '{"id": "a1b2c3d4", "hit": []}',
        '{"id": "a1b2c3d4", "hit": [], "show": [], "more": 1}',
        '{"id": 12345678, "hit": [], "show": []}',
        '{"id": "short", "hit": [], "show": []}',
        '{"id": "with blanks", "hit": [], "show": []}',
        json.dumps({"id": "a1b2c3d4", "hit": ["x"] * 201, "show": []}),
        json.dumps({"id": "a1b2c3d4", "hit": ["x" * 33_000], "show": []}),
    ],
    ids=range(15),
)
def test_malformed_request_costs_no_query_and_says_why(article, text):
    with CaptureQueriesContext(connection) as queries:
        response = send_text(text)

    assert response.status_code == 400
    assert response.content
    assert not queries.captured_queries


def test_ten_thousand_bad_tokens_cost_no_query_and_are_in_the_report(article):
    valid = beacon_token(article)
    foreign = Signer(key="another site", salt=SALT).sign_object(
        ["hit", "app.article", "1", "views"]
    )
    bad = [secrets.token_urlsafe(60) for _ in range(9_000)]
    bad += [valid[:place] for place in range(len(valid))] * 9
    bad += [foreign] * (10_000 - len(bad))
    with CaptureQueriesContext(connection) as queries:
        statuses = {send(bad[start : start + 200]).status_code for start in range(0, 10_000, 200)}

    assert statuses == {200}
    assert not queries.captured_queries
    assert article.hits == 0

    send([article])
    flush_hits()
    # A request that has the same token twice has sent it once.
    pieces = [bad[start : start + 200] for start in range(0, 10_000, 200)]
    assert refused_today() == {("views", "bad_token"): sum(len({*piece}) for piece in pieces)}


def test_refused_tokens_are_written_after_a_minute(article):
    send(["bad"])
    flush_hits()
    assert refused_today() == {}

    refused_tokens._written_at -= 61
    send(["worse"])
    flush_hits()
    assert refused_today() == {("views", "bad_token"): 2}


def test_flood_of_one_address_is_bounded(article):
    others = [Article.objects.create(title=str(number)) for number in range(9)]
    with override_hitcount(BEACON_HITS_PER_MINUTE=15), time_machine.travel("2026-03-10 12:00:10"):
        send([article, *others], view_id="view-one")
        send([article, *others], view_id="view-two")
        send([article], view_id="view-six")
        assert sum(get_hits([article, *others]).values()) == 15
        send([article], view_id="view-ten", client=Client(REMOTE_ADDR="198.51.100.7"))
        assert article.hits == 3
    with override_hitcount(BEACON_HITS_PER_MINUTE=15), time_machine.travel("2026-03-10 12:01:10"):
        send([article], view_id="view-later")
        assert article.hits == 4


def test_nothing_is_kept_of_more_views_of_a_flood(article, redis):
    with override_hitcount(BEACON_HITS_PER_MINUTE=2), time_machine.travel("2026-03-10 12:00:10"):
        for number in range(5):
            assert send([article], view_id=f"view-{number}000").status_code == 200
        flush_hits()
        assert refused_today() == {("views", "address_limit"): 3}
        kept = len(redis.keys("*view-*"))

    assert article.hits == 2
    assert kept + Admission.objects.filter(name__contains="view-").count() == 2


def test_refused_hits_do_not_use_up_the_limit(article):
    with override_hitcount(BEACON_HITS_PER_MINUTE=1):
        for number in range(3):
            send([article], view_id=f"view-{number}000", User_Agent="curl/8.5.0")
        send([article], view_id="view-of-a-browser")
        flush_hits()

    assert article.hits == 1
    assert refused_today() == {("views", "bot"): 3}


def test_proxy_that_is_not_configured_has_no_limit(article):
    proxy = Client(REMOTE_ADDR="10.0.0.1")
    with override_hitcount(BEACON_HITS_PER_MINUTE=1):
        for number in range(3):
            send(
                [article], view_id=f"view-{number}000", client=proxy, X_Forwarded_For="203.0.113.9"
            )

    assert article.hits == 3


def test_image_counts_and_is_never_cached(article):
    response = image_of(beacon_token(article), **{"Sec-Fetch-Site": "same-origin"})
    image_of("bad")

    assert response["Content-Type"] == "image/gif"
    assert "no-store" in response["Cache-Control"]
    assert article.hits == 1


@pytest.mark.parametrize(
    "headers", [{"User-Agent": "curl/8.5.0"}, {"Sec-Purpose": "prefetch"}, {"HX-Preloaded": "true"}]
)
def test_other_refusals_apply(article, headers):
    send([article], **{name.replace("-", "_"): value for name, value in headers.items()})
    image_of(beacon_token(article), **headers)

    assert article.hits == 0


def test_other_methods_are_refused(article):
    assert Client().get("/seen/").status_code == 405
    assert Client().post(f"/seen/{beacon_token(article)}.gif").status_code == 405


def test_costs(article):
    ContentType.objects.get_for_model(Article)
    send([article], view_id="warm-up-1")
    with CaptureQueriesContext(connection) as queries:
        send([article, Article.objects.create(title="Mate")], view_id="counted-1")

    found = [query["sql"] for query in queries if "app_article" in query["sql"].lower()]
    assert len([sql for sql in found if sql.startswith("SELECT")]) == 1
