"""
Read what Redis knows: running totals, hits that it holds, and the visitors of days.

Hits are read together with the ids of their batches: that of the batch that is set aside, and that
which the pending hits get. If the ledger has an id when the tables are read afterwards, its hits
are in the tables already.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from django_hitcount.buffers.redis import visitors
from django_hitcount.buffers.redis.claiming import read_held_id
from django_hitcount.buffers.redis.keys import RunKeys, all_runs, database_prefix, run_keys
from django_hitcount.buffers.redis.link import ForeignValue, Link, Reply
from django_hitcount.buffers.redis.scripts import (
    GAP,
    PackedCall,
    ScriptCall,
    fill_gaps,
    pack_gaps,
)
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters import group_items
from django_hitcount.counters.batches import BatchId, Held, Known, Position, Waiting
from django_hitcount.counters.keys import CounterKey
from django_hitcount.counters.numbers import Number
from django_hitcount.exceptions import BufferUnavailable

EPOCH_BITS = 48
"""Length of the number that names an epoch. Two are the same with a chance of 1 in 10^14."""

MOST_DIGITS = 10
"""Of a number of counters, and of a moment in seconds since 1970. Longer ones are not ours."""


Days = tuple[datetime.date | None, datetime.date | None]
"""The first and the last day of hits that are read together; None and None for all days."""


class Unknown(NamedTuple):
    """What Redis returns about counters of a partition whose totals it does not know."""

    keys: Sequence[CounterKey]
    epoch: bytes | None
    """None if no totals are wanted."""

    held: Sequence[Sequence[Any]]
    """What ``held_in_runs`` in ``lua/held_hits.lua`` says of them."""


class Reading:
    """The commands that read numbers in one round trip, and the meaning of their replies."""

    def __init__(
        self, numbers: Iterable[Number], partitions: int, *, may_be_kept: bool = True
    ) -> None:
        self._hits: dict[tuple[int, Days], list[Number]] = {}
        of_visitors: list[Number] = []
        for number in numbers:
            key, first_day, last_day, is_of_visitors = number
            if is_of_visitors:
                of_visitors.append(number)
            else:
                place = key.partition(partitions), (first_day, last_day)
                self._hits.setdefault(place, []).append(number)
        places = [number.key.partition(partitions) for number in of_visitors]
        self._visitors = group_items(places, of_visitors)
        self._kept = {*filter(visitors.can_keep, of_visitors)} if may_be_kept else set[Number]()
        self._packed: tuple[tuple[str, str], list[tuple[str, bytes]]] = ("", ""), []

    def build(self, link: Link) -> list[PackedCall]:
        """Make the calls. Packs those for one database and run only once, but for a number."""
        packed_for, packed = self._packed
        run_id = link.run_id
        wanted = database_prefix(), run_id
        if packed_for != wanted:
            calls = []
            for (partition, days), numbers in self._hits.items():
                keys = [number.key for number in numbers]
                totals = keys if days == (None, None) else ()
                names = run_keys(partition, run_id)
                calls.append(_build_read(names, days, map(describe, keys), totals))
            calls += visitors.build_reads(self._visitors, run_id, self._kept)
            packed = [(call.name, pack_gaps(call, run_id)) for call in calls]
            self._packed = wanted, packed
        epochs = [b"%d" % random.getrandbits(EPOCH_BITS) for _ in packed]
        return [
            fill_gaps(name, text, [epoch])
            for (name, text), epoch in zip(packed, epochs, strict=True)
        ]

    def parse(self, run_id: str, replies: Sequence[Reply]) -> Known:
        """Convert the last of ``replies``. If one is missing, nothing is known."""
        size = len(self._hits) + len(self._visitors)
        replies = replies[max(len(replies) - size, 0) :]
        if any(isinstance(reply, BufferUnavailable) for reply in replies):
            return Known()
        known = Known()
        for ((partition, _), numbers), (epoch, totals, held) in zip(
            self._hits.items(), replies, strict=False
        ):
            of_each = totals or [None] * len(numbers)  # Those of some days have no totals.
            pairs = [*zip(numbers, of_each, strict=True)]
            known.values |= {number: int(total) for number, total in pairs if total is not None}
            missing = [number.key for number, total in pairs if total is None]
            add_held(known, partition, run_id, Unknown(missing, epoch, held))
        of_visitors = replies[len(self._hits) :]
        visitors.add_replies(known, self._visitors, run_id, of_visitors, self._kept)
        return known


@cached_for_settings("HITCOUNT", maxsize=1024)
def read_for_page(wanted: tuple[Number, ...], partitions: int) -> Reading:
    """Return the Reading of what a page wants. Pages of one object want the same."""
    return Reading(wanted, partitions)


def add_held(known: Known, partition: int, run_id: str, found: Unknown) -> None:
    """Add the hits of counters that Redis holds to what is known."""
    for held in found.held:
        _add_batch(known.held, partition, found.keys, held)
    if found.epoch is not None and found.keys:
        next_id = read_held_id(found.held[0][0], partition)
        position = Position(partition, run_id, found.epoch, next_id)
        known.keepable |= dict.fromkeys(map(Number, found.keys), position)


def read_days_of_model(
    redis: RedisServer,
    content_type_id: int | None,
    counter: str,
    first_day: datetime.date,
    last_day: datetime.date,
) -> Held:
    """
    Read the hits of a model, or of all models; none if Redis does not answer.

    Costs two round trips.
    """
    held: dict[BatchId, dict[tuple[str, datetime.date], int]] = {}
    days = first_day, last_day
    of_model = counter if content_type_id is None else f"{content_type_id}:{counter}"
    with suppress(BufferUnavailable):
        partitions = [partition for partition, runs in enumerate(read_runs(redis)) if runs]
        _, replies = redis.send_to_run(
            lambda link: [
                _build_read(run_keys(partition, link.run_id), days, [(of_model, "")])
                for partition in partitions
            ]
        )
        for partition, (_, _, found) in zip(partitions, replies, strict=True):
            for hits in found:
                _add_batch(held, partition, [counter], hits)
    return held


def _build_read(
    names: RunKeys,
    days: Days,
    counters: Iterable[tuple[str, str]],
    with_totals: Iterable[CounterKey] = (),
) -> ScriptCall:
    """Make the call that reads hits. A gap in it is for an epoch, which only totals need."""
    keys = [names.batch, names.pending, names.runs]
    if totals := [names.total(key.text) for key in with_totals]:
        keys += [names.epoch, *totals]
    ends = [day.isoformat() if day else "" for day in days]
    return ScriptCall("read_hits", keys, [GAP, *ends, *chain(*counters)])


def describe(key: CounterKey) -> tuple[str, str]:
    """Return a counter as the scripts take it."""
    return f"{key.content_type_id}:{key.counter}", f":{key.object_id}"


def _add_batch(
    held: dict[BatchId, dict[Any, int]], partition: int, labels: Sequence[Any], found: Sequence[Any]
) -> None:
    """Add what ``held_of`` in ``lua/held_hits.lua`` returns."""
    batch_id = read_held_id(found[0], partition)
    # A counter of all models comes once for each model.
    sums = Counter[tuple[int, bytes]]()
    for place, day, amount in zip(found[1::3], found[2::3], found[3::3], strict=True):
        sums[place, day] += int(amount)
    hits = held.setdefault(batch_id, {})
    for (place, day), amount in sums.items():
        with suppress(ValueError):  # Not a day: we did not write it.
            hits[labels[place - 1], datetime.date.fromisoformat(day.decode())] = amount


def read_waiting(redis: RedisServer) -> Waiting:
    """Read what waits in all partitions. Costs two round trips. Raises BufferUnavailable."""
    commands = [
        ("HMGET", name, "counters", "since", "claimed_at")
        for partition, runs in enumerate(read_runs(redis))
        for names in [run_keys(partition, run_id) for run_id in runs]
        for name in (names.pending, names.batch)  # If a claim comes between, both have the hits.
    ]
    found: list[list[int]] = [[], [], []]
    for reply in redis.try_to_send(lambda link: commands, commands=1).replies if commands else ():
        if isinstance(reply, ForeignValue):
            continue  # The next claim moves it away.
        if isinstance(reply, BufferUnavailable):
            raise reply
        for numbers, text in zip(found, reply, strict=True):
            if text and text.isdigit() and len(text) <= MOST_DIGITS:
                numbers.append(int(text))
    counters, *moments = found
    oldest_at, claimed_at = (
        datetime.datetime.fromtimestamp(min(known), tz=datetime.UTC) if known else None
        for known in moments
    )
    return Waiting(sum(counters), oldest_at, claimed_at)


def read_runs(redis: RedisServer) -> list[list[str]]:
    """Read the runs of which each partition may hold hits. Costs a round trip."""
    (found,) = redis.send([("MGET", *all_runs())])
    return [(runs or b"").decode(errors="replace").split() for runs in found]
