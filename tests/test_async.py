"""Functions and tags that wait for a server refuse to block the event loop."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.template import Context, Template
from django.test import RequestFactory

from django_hitcount.buffers import get_buffer
from django_hitcount.models import HitCountQuerySet
from django_hitcount.reading import aget_hits, get_hits
from django_hitcount.recording import arecord_hit, record_hit
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.cache_alias import NOWHERE, change_alias

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("no_connection_of_the_thread_is_left"),
]


@pytest.fixture
async def article(buffer) -> Article:
    """An article whose total the buffer knows."""
    article = await Article.objects.acreate(title="Tea")
    await arecord_hit(article)
    return article


def render(article: Article, tag: str) -> str:
    request = RequestFactory(headers=BROWSER).get("/")
    template = Template("{% load hitcount %}{% " + tag + " article %}")
    return template.render(Context({"article": article, "request": request}))


@pytest.mark.parametrize("tag", ["hit_count", "hits"])
async def test_tags_need_a_thread(article, tag):
    """Not only when Redis does not know a number: that would be a page that fails at times."""
    article = await Article.objects.aget()  # It remembers nothing.
    with pytest.raises(SynchronousOnlyOperation):
        render(article, tag)

    assert await aget_hits(article) == 1
    assert await sync_to_async(render)(article, tag) == ("2" if tag == "hit_count" else "1")


async def test_it_tells_nothing_about_a_server_that_is_away(redis_buffer, settings):
    """A call that was not made is no answer of the server."""
    article = await Article.objects.acreate(title="Tea")
    change_alias(settings, LOCATION=NOWHERE)
    get_buffer.cache_clear()
    await arecord_hit(article)
    breaker = get_buffer()._breaker
    breaker.try_now()
    with pytest.raises(SynchronousOnlyOperation):
        record_hit(article)

    assert breaker.is_open


@pytest.mark.parametrize("function", [record_hit, get_hits])
async def test_functions_have_async_versions(article, function):
    with pytest.raises(SynchronousOnlyOperation):
        function(article)

    assert await aget_hits(article) == 1


async def test_the_error_says_what_to_use_instead(redis_buffer):
    article = await Article.objects.acreate(title="Tea")
    await arecord_hit(article)
    with pytest.raises(SynchronousOnlyOperation, match=r"arecord_hit.*sync_to_async"):
        record_hit(article)


async def test_async_methods_call_those_that_a_class_overrides(article, monkeypatch):
    class Own(HitCountQuerySet):
        def popular(self, limit, **options):
            return [limit, options]

    def record_hit(self, request=None, **options):
        return [self, request, options]

    monkeypatch.setattr(Article, "record_hit", record_hit)
    assert await article.arecord_hit(None, amount=2) == [article, None, {"amount": 2}]
    assert await Own(Article).apopular(3, days=7) == [3, {"days": 7}]
