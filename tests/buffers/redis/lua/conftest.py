"""Calls of single scripts."""

from __future__ import annotations

from functools import partial

import pytest

from django_hitcount.buffers.redis.record_call import build_record_call
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.outages.missed_records import CommandId
from tests.buffers.redis.lua.partition import COUNTS, KEYS, RECORDER, RUN_ID, TODAY
from tests.redis_server import replies_to


@pytest.fixture
def server(redis) -> RedisServer:
    """The server, whose Redis is empty."""
    return RedisServer("hitcount", timeout_seconds=20)


@pytest.fixture
def call(server):
    """Call a script by its name; returns its answer."""

    def run(name, keys, *args):
        (reply,) = replies_to(server, [ScriptCall(name, keys, args)])
        return reply

    return run


@pytest.fixture(params=["common", "careful"])
def path(request):
    """What record.lua does with a common hit at once must be what it does with any hit."""
    return request.param


@pytest.fixture
def record(record_on, path):
    """Record hits on one object, as the command with a number; returns the answer."""
    return partial(record_on, path)


@pytest.fixture
def record_on(server):
    """As ``record``, on the "common" path or on the "careful" one."""

    def run(path, sequence, amount=1, threshold=0, *, expected="", object_id="a", **of_hit):
        hit = NewHits(CounterKey(5, object_id, "views"), TODAY, amount, **of_hit)
        number = CommandId(RECORDER.hex, sequence, RUN_ID)
        call = build_record_call(KEYS, [hit], number, threshold, expected=expected)
        if path == "common" and amount > 0 and not (expected or of_hit):
            call = call._replace(
                args=[*call.args[:5], "common", *call.args[6:], hit.key.model_on(TODAY)]
            )
        (reply,) = replies_to(server, [call])
        if isinstance(reply, int):
            reply = [reply, COUNTS]
        if reply is not None and len(reply) == 2:
            total, verdict = reply
            reply = [0, [total], [verdict], None]
        return reply

    return run


@pytest.fixture
def rule(settings):
    """Set the options of the counter "views"."""

    def apply(repeat="always", **options):
        options = {"repeat": repeat, **options}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}

    return apply
