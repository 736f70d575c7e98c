"""django-redis closes its connections after each request, and Redis restarts between two."""

from __future__ import annotations

import signal

import pytest
from django.core.cache import close_caches

from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests import children
from tests.app.models import Article
from tests.servers import Valkey, wait_until
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def connections_are_closed(own_valkey, settings) -> None:
    settings.DJANGO_REDIS_CLOSE_CONNECTION = True


def end_request() -> None:
    """What the signal request_finished does."""
    close_caches()


def restart(server: Valkey) -> None:
    server.stop(signal.SIGKILL)
    server.start()


def record_and_flush(article: Article, amount: int) -> None:
    record_hit(article, amount=amount)
    flush_hits()


def test_connections_are_closed(own_valkey, article):
    record_hit(article)
    assert own_valkey.connections() == 1
    end_request()

    wait_until(lambda: own_valkey.connections() == 0, "the end of the connection")


def test_totals_are_those_of_the_new_run(own_valkey, article):
    """Not those that Redis kept from the run before, and that others have outrun."""
    assert record_hit(article, amount=5).total == 5
    end_request()
    restart(own_valkey)
    assert children.run(lambda: record_and_flush(article, 3)) == 0

    assert get_hits(article) == 8


def test_hits_after_a_restart_count(own_valkey, article):
    assert record_hit(article, amount=5).total == 5
    end_request()
    restart(own_valkey)

    assert record_hit(article).total == 6
    end_request()
    restart(own_valkey)
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 6}
    assert get_hits(article) == 6


def test_connections_do_not_pile_up(own_valkey, article):
    for _ in range(5):
        record_hit(article)
        end_request()

    assert own_valkey.connections() <= 1  # The server may not have noticed yet that it is closed.
