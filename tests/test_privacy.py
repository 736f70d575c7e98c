"""P5: nothing of a visitor reaches the database or Redis."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.test import Client

from django_hitcount.maintenance.flushing import flush_hits
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.django_db(transaction=True)

TRACES = [b"203.0.113.77", b"2001:db8", b"Tell-tale", b"tattletale", b"secret-referrer"]
VISITOR = {
    "REMOTE_ADDR": "203.0.113.77",
    "HTTP_X_FORWARDED_FOR": "2001:db8::4242",
    "HTTP_USER_AGENT": "Mozilla/5.0 (X11; Tell-tale) Gecko/20100101 Firefox/140.0",
    "HTTP_COOKIE": "sessionid=tattletale123",
    "HTTP_REFERER": "https://example.com/secret-referrer",
}


def everything(redis) -> bytes:
    """All rows of our tables and all keys and values in Redis, as text."""
    rows = [
        repr(row)
        for model in apps.get_app_config("django_hitcount").get_models()
        for row in model._base_manager.values_list()
    ]
    keys = [(key, redis.dump(key)) for key in redis.keys("*")]
    hashes = [redis.hgetall(key) for key, _ in keys if redis.type(key) == b"hash"]
    return repr((rows, keys, hashes)).encode()


def test_no_trace_of_a_visitor_is_kept(redis, buffer):
    article = Article.objects.create(title="Tea")
    for _ in range(3):
        assert Client(headers=BROWSER).get(f"/articles/{article.pk}/", **VISITOR).status_code == 200
    before = everything(redis)
    flush_hits()
    after = everything(redis)

    assert b"views" in before
    assert b"views" in after
    assert not [trace for trace in TRACES if trace in before + after]
