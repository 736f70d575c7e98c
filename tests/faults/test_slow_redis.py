"""Redis answers, but slowly: a page waits once, and never longer than the timeout."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from types import SimpleNamespace

import pytest
from django.db import transaction
from django.http import HttpRequest
from django.template import Context, Template
from django.test import Client, RequestFactory
from django_redis import get_redis_connection
from redis.sentinel import Sentinel, SentinelConnectionPool

from django_hitcount import outages
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import server
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.outages import SLOW_CALLS
from django_hitcount.outages.waits import CurrentPage, seconds_left, seconds_waited
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.cache_alias import change_alias
from tests.proxies import Proxy
from tests.redis_server import replies_to
from tests.servers import HOST
from tests.tables import slot_sums
from tests.waits import waits_for

pytestmark = pytest.mark.django_db(transaction=True)

TIMEOUT_SECONDS = 1
ONE_WAIT_SECONDS = 2.5
"""One timeout, and the work of a page."""

LONG_TIMEOUT_SECONDS = 20
"""So that what is slow is not silent, however busy the machine is."""

SLOW_SECONDS = 1.2
"""How long a slow answer takes."""


@pytest.fixture(autouse=True)
def timeout(settings) -> None:
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS_TIMEOUT_SECONDS": TIMEOUT_SECONDS}


@pytest.fixture
def long_timeout(settings) -> None:
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS_TIMEOUT_SECONDS": LONG_TIMEOUT_SECONDS}


@pytest.fixture
def slow_from_one_second(long_timeout, monkeypatch) -> None:
    """A call is slow if it takes longer than a second, and fails if it takes 20."""
    monkeypatch.setattr(outages, "SLOW_SHARE", 1 / LONG_TIMEOUT_SECONDS)


@pytest.fixture
def proxy(own_valkey) -> Iterator[Proxy]:
    proxy = Proxy(own_valkey.port)
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def slow_redis(proxy, settings) -> Proxy:
    """A proxy through which the buffer talks to Redis."""
    set_location(settings, f"redis://{HOST}:{proxy.port}/1")
    return proxy


def set_location(settings, location: str, **options: object) -> None:
    change_alias(settings, LOCATION=location, OPTIONS=options)
    get_buffer.cache_clear()


def view(article: Article) -> int:
    response = Client(headers=BROWSER).get(f"/articles/{article.pk}/")
    assert response.status_code == 200
    return int(response.content)


def waits_once() -> AbstractContextManager[None]:
    return waits_for(0, ONE_WAIT_SECONDS)


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("parser", ["", "redis._parsers._RESP2Parser"])
def test_answer_that_drips_is_waited_for_once(slow_redis, article, settings, protocol, parser):
    options = {"PARSER_CLASS": parser} if parser else {}
    location = f"redis://{HOST}:{slow_redis.port}/1?protocol={protocol}"
    set_location(settings, location, **options)
    view(article)
    slow_redis.drips, slow_redis.delay_seconds = True, 0.8
    with waits_once():
        view(article)

    slow_redis.drips, slow_redis.delay_seconds = False, 0
    flush_hits()
    assert slot_sums([article]) == {article: 2}


def test_answer_in_pieces_that_comes_in_time_is_read(slow_redis, long_timeout, article):
    view(article)
    slow_redis.drips, slow_redis.delay_seconds = True, 0.0005

    assert [view(article) for _ in range(3)] == [2, 3, 4]
    assert not get_buffer()._breaker.is_open


def test_connecting_is_part_of_the_wait(slow_redis, article):
    """Each step of it is answered in time, and all of them are not."""
    slow_redis.delay_seconds = 0.8
    with waits_once():
        assert view(article) == 1

    assert slot_sums([article]) == {article: 1}


@pytest.fixture
def silent_port(redis_buffer) -> Iterator[int]:
    """The port of a server that accepts connections and never answers."""
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_server_that_says_nothing_is_waited_for_once(silent_port, article, settings, scheme):
    set_location(settings, f"{scheme}://:password@{HOST}:{silent_port}/1")
    with waits_once():
        assert view(article) == 1
    assert get_buffer()._breaker.is_open


@pytest.fixture
def full_port(redis_buffer) -> Iterator[int]:
    """The port of a busy server that accepts no connection and whose queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((HOST, 0), backlog=0))
        address = listener.getsockname()
        with suppress(TimeoutError):
            while True:
                stack.enter_context(socket.create_connection(address, timeout=0.1))
        yield address[1]


def test_addresses_of_one_host_share_the_wait(full_port, article, settings, monkeypatch):
    addresses = socket.getaddrinfo(HOST, full_port, 0, socket.SOCK_STREAM) * 5
    set_location(settings, f"redis://{HOST}:{full_port}/1")
    get_buffer()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args: addresses)
    with waits_once():
        assert view(article) == 1
    assert get_buffer()._breaker.is_open


def test_sentinels_share_the_wait(silent_port, monkeypatch):
    sentinel = Sentinel([(HOST, silent_port)] * 5)
    pool = SentinelConnectionPool("name", sentinel)
    monkeypatch.setattr(server, "_connection_pool", lambda alias: pool)
    with waits_once(), pytest.raises(BufferUnavailable):
        RedisServer("hitcount", timeout_seconds=TIMEOUT_SECONDS).send([("PING",)])


@pytest.fixture
def articles() -> list[Article]:
    return [Article.objects.create(title=str(number)) for number in range(9)]


def view_all(articles: list[Article], request: HttpRequest | None = None) -> None:
    """A page that counts and shows each article."""
    tag = "{% for article in articles %}{% hit_count article %}{% hits article %}{% endfor %}"
    request = request or RequestFactory(headers=BROWSER).get("/")
    context = Context({"articles": articles, "request": request})
    Template("{% load hitcount %}" + tag).render(context)


@pytest.mark.parametrize("delay_seconds", [0.4, 0.8])
@pytest.mark.parametrize("surroundings", [nullcontext, transaction.atomic])
def test_page_waits_once_however_many_tags_it_has(
    slow_redis, articles, surroundings, delay_seconds
):
    record_hits(articles)
    slow_redis.delay_seconds = delay_seconds
    with waits_once(), surroundings():
        view_all(articles)
    slow_redis.delay_seconds = 0
    flush_hits()

    assert slot_sums(articles) == dict.fromkeys(articles, 2)


@pytest.fixture
def clock(clock, slow_redis) -> SimpleNamespace:
    """A clock that shows how long answers took, and nothing else."""
    clock.seconds_per_answer = 0.0

    def advance(answer: bytes) -> bytes:
        clock.now += clock.seconds_per_answer
        return answer

    slow_redis.rewrite = advance
    return clock


@pytest.mark.usefixtures("long_timeout")
def test_page_of_many_quick_answers_reads_them_all(slow_redis, clock, article):
    """They are no wait, though they take longer than the timeout together."""
    view(article)
    get_hits(article)  # Loads the script.
    clock.seconds_per_answer = 1
    asked, calls, began_at = slow_redis.questions, 2 * LONG_TIMEOUT_SECONDS, clock.now
    with CurrentPage(RequestFactory().get("/")):
        for _ in range(calls):
            get_hits(article)
        assert seconds_waited(get_buffer()._breaker.server) == 0

    assert clock.now - began_at >= calls
    assert slow_redis.questions == asked + calls
    assert not get_buffer()._breaker.is_open


@pytest.mark.usefixtures("long_timeout")
def test_calls_of_a_page_share_the_timeout(clock, article):
    """Each call may wait for as long as those before it have left."""
    view(article)
    left = []
    with CurrentPage(RequestFactory().get("/")):
        for _ in range(2):
            with get_buffer()._breaker.guard():
                left.append(seconds_left())
                clock.now += LONG_TIMEOUT_SECONDS * 0.25

    assert left == [LONG_TIMEOUT_SECONDS, LONG_TIMEOUT_SECONDS * 0.75]


@pytest.mark.usefixtures("slow_from_one_second", "endless_pauses")
def test_redis_that_is_slow_again_and_again_is_left_alone(slow_redis, article, caplog):
    view(article)
    slow_redis.delay_seconds = SLOW_SECONDS
    shown = [view(article) for _ in range(SLOW_CALLS)]
    asked = slow_redis.questions
    shown += [view(article) for _ in range(3)]

    assert slow_redis.questions == asked
    assert len(caplog.records) == 1
    slow_redis.delay_seconds = 0
    flush_hits()
    assert not get_buffer()._breaker.is_open
    assert view(article) == slot_sums([article])[article] + 1
    assert shown[:SLOW_CALLS] == [2, 3, 4]


@pytest.mark.usefixtures("long_timeout")
def test_redis_that_is_slow_now_and_then_is_used(clock, article):
    for seconds in [0, LONG_TIMEOUT_SECONDS * 0.6, LONG_TIMEOUT_SECONDS * 0.6, 0] * 2:
        clock.seconds_per_answer = seconds
        view(article)

    assert not get_buffer()._breaker.is_open


@pytest.mark.usefixtures("slow_from_one_second")
def test_slow_redis_can_be_flushed(slow_redis, article):
    """Nobody waits for a flush."""
    view(article)
    flush_hits()
    view(article)
    slow_redis.delay_seconds = SLOW_SECONDS
    flush_hits([counter_key(article, counter="views").partition(16)])

    assert slot_sums([article]) == {article: 2}
    assert not get_buffer()._breaker.is_open


@pytest.mark.parametrize("parser", ["", "redis._parsers._RESP2Parser"])
@pytest.mark.parametrize(
    "refusal",
    [b"-LOADING Redis is loading the dataset in memory", b"-NOAUTH Authentication required."],
)
def test_only_the_command_that_is_refused_is_taken_for_refused(
    slow_redis, settings, parser, refusal
):
    """Redis runs those after it, as when it has just loaded its data."""
    options = {"PARSER_CLASS": parser} if parser else {}
    set_location(settings, f"redis://{HOST}:{slow_redis.port}/1", **options)
    own_server = RedisServer("hitcount", timeout_seconds=LONG_TIMEOUT_SECONDS)
    slow_redis.rewrite = lambda answer: answer.replace(b"+PONG", refusal)
    commands = [("PING",), ("INCR", "other"), ("INCR", "other")]
    refused, *others = own_server.send_unguarded(lambda link: commands).replies

    assert type(refused) is BufferUnavailable
    assert others == [1, 2]
    assert replies_to(own_server, [("GET", "other")]) == [b"2"]


@pytest.mark.parametrize("pool", ["ConnectionPool", "BlockingConnectionPool"])
def test_connection_that_other_code_opened_gets_the_timeout(slow_redis, article, settings, pool):
    location = f"redis://{HOST}:{slow_redis.port}/1"
    set_location(settings, location, CONNECTION_POOL_CLASS=f"redis.connection.{pool}")
    get_redis_connection("hitcount").ping()
    get_buffer()
    slow_redis.drips, slow_redis.delay_seconds = True, 0.8
    with waits_once():
        view(article)


@pytest.mark.usefixtures("long_timeout")
def test_wait_for_a_hit_after_the_commit_is_one_of_its_page(clock, article):
    """So the tags that follow do not wait once more."""
    view(article)
    request = RequestFactory(headers=BROWSER).get("/")
    with transaction.atomic():
        record_hit(article, request)
        clock.seconds_per_answer = LONG_TIMEOUT_SECONDS * 0.6

    with CurrentPage(request):
        assert seconds_waited(get_buffer()._breaker.server) == clock.seconds_per_answer
