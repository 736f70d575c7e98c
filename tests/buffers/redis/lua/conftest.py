"""Calls of single scripts."""

from __future__ import annotations

import pytest

from django_hitcount.buffers.redis.record_call import build_record_call
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.transport import RedisTransport
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.outages.command_ids import CommandId
from tests.buffers.redis.lua.partition import KEYS, RECORDER, TODAY
from tests.redis_server import replies_to


@pytest.fixture
def transport(redis) -> RedisTransport:
    """A transport to an empty Redis."""
    return RedisTransport("hitcount", timeout_seconds=20)


@pytest.fixture
def call(transport):
    """Call a script by its name; returns its answer."""

    def run(name, keys, *args):
        (reply,) = replies_to(transport, [ScriptCall(name, keys, args)])
        return reply

    return run


@pytest.fixture
def record(transport):
    """Record hits on one object, as the command with a number; returns the answer."""

    def run(sequence, amount=1, threshold=0, *, expected="", object_id="a", **of_hit):
        hit = NewHits(CounterKey(5, object_id, "views"), TODAY, amount, **of_hit)
        number = CommandId(RECORDER, sequence)
        call = build_record_call(KEYS, [hit], number, threshold, expected=expected)
        (reply,) = replies_to(transport, [call])
        return reply

    return run


@pytest.fixture
def rule(settings):
    """Set the options of the counter "views"."""

    def apply(repeat="always", **options):
        options = {"repeat": repeat, **options}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}

    return apply
