"""Redis is killed again and again, as flushers and compactors are, while hits rain in."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest
import redis
from django_redis.pool import ConnectionFactory

from django_hitcount.reading import get_hits
from tests.app.models import Article
from tests.cache_alias import change_alias
from tests.concurrency.storm import Storm
from tests.servers import HOST, Valkey
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

OBJECTS = 20
SECONDS_BETWEEN_SNAPSHOTS = 2.0


@pytest.fixture
def storm(tmp_path, settings, request):
    """A storm around a Redis with the options of the test's parameter."""
    server = Valkey(tmp_path, options=getattr(request, "param", ()))
    server.start()
    location = f"redis://{HOST}:{server.port}/0"
    # Without options, calls have the default timeout, as on most sites.
    change_alias(settings, LOCATION=location, OPTIONS={})
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": "hitcount"}
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(OBJECTS))
    yield Storm(server, articles)
    server.stop(signal.SIGKILL)
    ConnectionFactory._pools.pop(location, None)  # Nobody needs its connections any more.


@pytest.mark.parametrize(
    "storm", [("--appendonly", "yes", "--appendfsync", "always")], indirect=True, ids=["always"]
)
def test_redis_that_loses_nothing_loses_no_hit(storm):
    storm.rage(lambda: None)

    sums = slot_sums(storm.articles)
    assert sums == daily_sums(storm.articles) == get_hits(storm.articles)
    assert not Counter(storm.counted) - Counter(sums), "lost"
    assert not Counter(sums) - Counter(storm.attempted), "counted twice"
    assert storm.crashes


def test_redis_that_goes_back_to_snapshots_doubles_no_hit(storm):
    snapshot_at = [time.monotonic()]

    def snapshot() -> None:
        if time.monotonic() >= snapshot_at[0]:
            snapshot_at[0] += random.uniform(0, 2 * SECONDS_BETWEEN_SNAPSHOTS)
            with suppress(redis.ResponseError):  # Another one is under way.
                storm.server.ask(random.choice(["SAVE", "BGSAVE"]))

    storm.rage(snapshot)

    sums = slot_sums(storm.articles)
    assert sums == daily_sums(storm.articles) == get_hits(storm.articles)
    assert not Counter(sums) - Counter(storm.attempted), "counted twice"
    assert storm.crashes
