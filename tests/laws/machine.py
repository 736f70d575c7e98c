"""What all laws have in common: an empty site, and events that may happen at any time."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from unittest import mock

import pytest
from django.apps import apps
from django.conf import settings
from django.test import override_settings
from django_redis import get_redis_connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from redis import Redis

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis import RedisBuffer, claiming
from django_hitcount.db import daily_visitors, ledger, slots
from django_hitcount.maintenance import flushing
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from tests.app.models import Article, Page


def refresh_hits(redis: Redis) -> None:
    """Void all running totals, as a command does after the tables or Redis were replaced."""
    for key in redis.scan_iter("*total*"):
        redis.delete(key)


class Crash(BaseException):
    """The end of a process."""


CRASHES = {
    "before the batch is read": (claiming, "read"),
    "before the ledger": (ledger, "add_batch"),
    "before the totals": (slots, "add_totals"),
    "before the days": (slots, "add_daily"),
    "before the refused hits": (slots, "add_refused"),
    "before the visitors": (daily_visitors, "write_sketches"),
    "before the settle": (RedisBuffer, "settle"),
}


class Machine(RuleBasedStateMachine):
    redis_alias: str | None = "hitcount"

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        """What is undone at the end, the last one first: a setting put back too early stays."""

    def begin(self, **options: object) -> None:
        """Empty Redis and the tables; ``options`` are keys of HITCOUNT."""
        own: Mapping[str, object] = {"REDIS": self.redis_alias, "PARTITIONS": 2, "SLOTS": 3}
        hitcount = {**settings.HITCOUNT, **own, **options}
        self.stack.enter_context(override_settings(HITCOUNT=hitcount))
        get_redis_connection("hitcount").flushall()
        # Objects first: deleting them writes rows of DeletedObject.
        for model in (Article, Page, *apps.get_app_config("django_hitcount").get_models()):
            model._base_manager.all().delete()

    def teardown(self) -> None:
        self.stack.close()

    @rule()
    def flush(self) -> None:
        flush_hits()
        self.all_is_flushed()

    def all_is_flushed(self) -> None:
        """Called after a flush of all partitions."""

    @rule(step=st.sampled_from(sorted(CRASHES)), partition=st.integers(0, 1))
    def crash_while_flushing(self, step, partition) -> None:
        if get_buffer().keeps_hits:
            with mock.patch.object(*CRASHES[step], side_effect=Crash), suppress(Crash):
                flushing.flush_partition(get_buffer(), partition)

    @rule()
    def compact(self) -> None:
        compact_hits()

    def drop_keys(self, pattern: str) -> None:
        redis = get_redis_connection("hitcount")
        for key in redis.scan_iter(pattern):
            redis.delete(key)


def with_each_buffer(machine: type[Machine]) -> pytest.MarkDecorator:
    """Try ``machine`` out with Redis, and with the database alone."""
    name = f"{machine.__name__}WithoutRedis"
    without_redis = type(name, (machine,), {"redis_alias": None})
    return pytest.mark.parametrize("machine", [machine, without_redis])


def run(machine: type[Machine], *, max_examples: int, **options: object) -> None:
    """Try ``machine`` out; ``options`` are settings of Hypothesis."""
    run_state_machine_as_test(
        machine,
        settings=hypothesis_settings(
            max_examples=max_examples,
            stateful_step_count=20,
            database=None,
            suppress_health_check=list(HealthCheck),
            **options,
        ),
    )
