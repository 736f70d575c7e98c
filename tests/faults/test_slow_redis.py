"""Redis answers, but slowly: a page waits once, and never longer than the timeout."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from django.test import Client
from django_redis import get_redis_connection
from redis.sentinel import Sentinel, SentinelConnectionPool

from django_hitcount.buffers import exchange, get_buffer
from django_hitcount.buffers.exchange import Exchange
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.flushing import flush
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.proxies import Proxy
from tests.servers import HOST
from tests.tables import slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

TIMEOUT_SECONDS = 0.25
ONE_WAIT_SECONDS = 1
"""At most: one timeout, and some work on a busy machine."""


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
    alias = {**settings.CACHES["hitcount"], "LOCATION": location, "OPTIONS": options}
    settings.CACHES = {**settings.CACHES, "hitcount": alias}
    get_buffer.cache_clear()


def view(article: Article) -> int:
    response = Client(headers=BROWSER).get(f"/articles/{article.pk}/")
    assert response.status_code == 200
    return int(response.content)


@contextmanager
def waits_once() -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < ONE_WAIT_SECONDS


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("parser", ["", "redis._parsers._RESP2Parser"])
def test_answer_that_drips_is_waited_for_once(slow_redis, article, settings, protocol, parser):
    options = {"PARSER_CLASS": parser} if parser else {}
    location = f"redis://{HOST}:{slow_redis.port}/1?protocol={protocol}"
    set_location(settings, location, **options)
    view(article)
    slow_redis.drips, slow_redis.delay_seconds = True, 0.2
    with waits_once():
        view(article)

    slow_redis.drips, slow_redis.delay_seconds = False, 0
    flush()
    assert slot_sums([article]) == {article: 2}


def test_answer_in_pieces_that_comes_in_time_is_read(slow_redis, article):
    view(article)
    slow_redis.drips, slow_redis.delay_seconds = True, 0.0005

    assert [view(article) for _ in range(3)] == [2, 3, 4]
    assert not get_buffer()._breaker.is_open


def test_connecting_is_part_of_the_wait(slow_redis, article):
    """Each step of it is answered in time, and all of them are not."""
    slow_redis.delay_seconds = 0.2
    with waits_once():
        assert view(article) == 1

    assert slot_sums([article]) == {article: 1}


@pytest.fixture
def silent_port(redis_buffer) -> Iterator[int]:
    """Of a server that takes connections and never says a word."""
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
    """Of a server that is busy: nobody takes a connection, and no more fit into its queue."""
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
    monkeypatch.setattr(exchange, "_connection_pool", lambda alias: pool)
    with waits_once(), pytest.raises(BufferUnavailable):
        Exchange("hitcount", timeout_seconds=TIMEOUT_SECONDS).run([("PING",)])


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
    exchange = Exchange("hitcount", timeout_seconds=TIMEOUT_SECONDS)
    slow_redis.rewrite = lambda answer: answer.replace(b"+PONG", refusal)
    commands = [("PING",), ("INCR", "other"), ("INCR", "other")]
    refused, *others = exchange.run(lambda run_id: commands).replies

    assert type(refused) is BufferUnavailable
    assert others == [1, 2]
    assert exchange.run_all([("GET", "other")]) == [b"2"]


@pytest.mark.parametrize("pool", ["ConnectionPool", "BlockingConnectionPool"])
def test_connection_that_somebody_else_opened_before_knows_the_timeout(
    slow_redis, article, settings, pool
):
    location = f"redis://{HOST}:{slow_redis.port}/1"
    set_location(settings, location, CONNECTION_POOL_CLASS=f"redis.connection.{pool}")
    get_redis_connection("hitcount").ping()
    get_buffer()
    slow_redis.drips, slow_redis.delay_seconds = True, 0.2
    with waits_once():
        view(article)
