"""
Keep in Redis what was read from the tables, so that a page need not read them, and drop it again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from django_hitcount.buffers.redis.keys import database_prefix, run_keys
from django_hitcount.buffers.redis.reading import describe
from django_hitcount.buffers.redis.scripts import Command, ScriptCall
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.counters import group_by_partition
from django_hitcount.counters.batches import Known, Position
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Number
from django_hitcount.exceptions import BufferUnavailable

SCANNED_AT_A_TIME = 1000
"""Keys that Redis looks at in one round trip."""

PAUSE_SECONDS = 30
"""Far longer than a COMMIT takes. If it takes longer, a total may be old until it is discarded."""

PAUSED = "paused"
"""In place of a total that nobody may keep now. No script takes it for a number."""

DISCARDABLE = re.compile(rb"{(\d+)}:[^:]*:(?:total|kept_visitors):")
"""The names, after the prefix, of what is read from the tables again if it is dropped."""


def keep_totals(
    redis: RedisServer, totals: Mapping[Number, int], known: Known, *, ttl_seconds: int
) -> None:
    """Keep totals, which are without pending hits. See Buffer.keep_totals()."""
    groups: dict[Position, list[CounterKey]] = {}
    for number in totals:
        if position := known.keepable.get(number):
            groups.setdefault(position, []).append(number.key)
    calls = []
    for position, keys in groups.items():
        names = run_keys(position.partition, position.run_id)
        args: list[str | int | bytes] = [position.epoch, ttl_seconds]
        for key in keys:
            args += *describe(key), totals[Number(key)]
        of_keys = [names.total(key.text) for key in keys]
        calls.append(ScriptCall("keep_totals", [names.epoch, names.pending, *of_keys], args))
    runs = {position.run_id for position in groups}
    if calls:
        with suppress(BufferUnavailable):
            # After a restart, Redis may be in an older state with the same epoch.
            redis.send_to_run(lambda link: calls if runs == {link.run_id} else [])


def pause(redis: RedisServer, keys: Iterable[CounterKey], partitions: int) -> None:
    """Keep no totals of ``keys``. See Buffer.pause_totals(). Costs a round trip per 500."""

    def build(some: Sequence[CounterKey], run_id: str) -> list[Command]:
        totals = [run_keys(key.partition(partitions), run_id).total(key.text) for key in some]
        return [("SET", total, PAUSED, "EX", PAUSE_SECONDS) for total in totals]

    with suppress(BufferUnavailable):
        redis.send_in_pieces(keys, build)


def discard_all(redis: RedisServer, partitions: int, only: Collection[int] | None = None) -> None:
    """
    Drop all totals and kept numbers of visitors, or those of some partitions.

    Totals that are read from the tables meanwhile are not kept, unless that began after this.
    Costs a round trip per thousand keys in Redis.
    """
    wanted = range(partitions) if only is None else only
    redis.send_to_run(
        lambda link: [ScriptCall("discard", [run_keys(p, link.run_id).epoch]) for p in wanted]
    )
    prefix = database_prefix()
    cursor: bytes | int = 0
    while cursor != b"0":
        command = ("SCAN", cursor, "MATCH", f"{prefix}{{*", "COUNT", SCANNED_AT_A_TIME)
        ((cursor, names),) = redis.send([command])
        found = [(name, DISCARDABLE.match(name, len(prefix))) for name in names]
        gone = [name for name, match in found if match and (only is None or int(match[1]) in only)]
        if gone:
            redis.send([("UNLINK", *gone)])


def build_discard_calls(
    partitions: int, keys: Iterable[CounterKey], run_id: str
) -> list[ScriptCall]:
    """
    Make the calls that drop the totals of ``keys``, so that they are loaded again.

    They also drop the kept numbers of visitors.
    """
    calls = []
    for partition, group in group_by_partition(keys, partitions).items():
        names = run_keys(partition, run_id)
        objects = dict.fromkeys(key[:2] for key in group)
        gone = [names.total(key.text) for key in group]
        gone += [names.kept_visitors_of(*of) for of in objects]
        calls.append(ScriptCall("discard", [names.epoch, *gone]))
    return calls
