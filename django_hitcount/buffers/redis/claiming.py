"""
Batches of RedisBuffer: claim them, read them, and drop them when they are in the tables.

The hits of each run of Redis have their own keys: see RunKeys.
"""

from __future__ import annotations

import datetime
import logging
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.link import Link
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.buffers.redis.visitors import read_sketches
from django_hitcount.counters.batches import Batch, BatchId
from django_hitcount.counters.keys import (
    CounterKey,
    DailyVisitorsKey,
    RefusedKey,
    parse_daily,
    parse_refused,
    parse_visitors,
)
from django_hitcount.db import ledger

FIELDS_AT_A_TIME = 2000
"""Fields that are read from a batch at a time. Each answer arrives well within the timeout."""

NAMES_AND_MOMENTS = {"id", "since", "claimed_at", "claim", "counters", "days"}
"""Fields that hold no hits. Those with the hits of models are sums of others."""

REMEMBERED_SECONDS = 7 * 24 * 3600
"""How long Redis remembers the last number of a recorder: longer than an outage should last."""

CLAIM_BITS = 53
"""Length of the random number of a claim. Two are the same with a chance of 1 in 10^16."""

HITS_LIMIT = 10**15
"""The most hits of a counter in a batch. More are malformed: a sum of batches must fit a bigint."""

BATCH_NAME = re.compile(rb"([A-Za-z0-9:]{1,100}):(0|[1-9][0-9]{0,14})")
"""As in lua/batch_names.lua. A text that does not match was not written by us."""

logger = logging.getLogger("django_hitcount")


class Claim(NamedTuple):
    """A batch that is set aside."""

    id: BatchId
    run_id: str
    is_left_over: bool


def claim(redis: RedisServer, partition: int, *, opened: str = "") -> Claim | None:
    """
    Set the pending hits of a partition aside as a batch. Return that of an earlier run first.

    If a batch is set aside already, returns that one. ``opened`` is a generation that is in the
    ledger.

    Costs one round trip. The first batch of a generation also costs a statement and a round trip:
    see ledger.open_generation().
    """

    def build(link: Link) -> list[ScriptCall]:
        names = run_keys(partition, link.run_id)
        keys = [names.runs, names.malformed, names.pending, names.epoch]
        number = random.getrandbits(CLAIM_BITS)
        return [ScriptCall("claim", keys, [opened, REMEMBERED_SECONDS, number])]

    current, ((moved, of_run, name, *is_new),) = redis.send_to_run(build)
    for key in moved:
        message = "Partition %d had a key that django_hitcount did not write. It is now named %r."
        logger.error(message, partition, key)
    if name and not is_new:
        generation = name.decode()
        ledger.open_generation(partition, generation)
        return claim(redis, partition, opened=generation)
    batch_id = read_batch_id(name, partition)
    if not batch_id:
        return None
    run_id = of_run.decode()
    return Claim(batch_id, run_id, is_left_over=is_new != [1] or run_id != current)


def read_batch_id(text: bytes | None, partition: int) -> BatchId | None:
    """Parse the id of the batch that is set aside; None without a text that we wrote."""
    found = BATCH_NAME.fullmatch(text or b"")
    return BatchId(partition, found[1].decode(), int(found[2])) if found else None


def read_held_id(name: bytes | None, partition: int) -> BatchId:
    """Parse the id of the batch that held hits are or become."""
    # Hits without a name are not ours. The ledger does not have them.
    return read_batch_id(name, partition) or BatchId(partition, "", 0)


def read(redis: RedisServer, claim: Claim) -> Batch | None:
    """
    Read a claimed batch. Returns None if another flusher has settled it meanwhile, or if Redis was
    restarted: the rest of the batch may then be that of an older state, and its order is another.

    Costs a round trip per 2,000 fields and per 100 sketches.
    """
    names = run_keys(claim.id.partition, claim.run_id)
    fields = _Fields()
    cursor: bytes | int = 0
    runs = set()

    def build(_: Link) -> list[ScriptCall]:
        args = [id_text(claim.id), cursor, FIELDS_AT_A_TIME]
        return [ScriptCall("read_batch", [names.batch], args)]

    while cursor != b"0":
        run_id, (reply,) = redis.send_to_run(build)
        runs.add(run_id)
        if reply is None or len(runs) > 1:
            return None
        cursor, flat = reply
        fields.add(flat)
    if claim.is_left_over:
        # Redis may have been restarted since, with older sketches than those in the table.
        fields.visitors = dict.fromkeys(fields.visitors, 1)
    totals: Counter[CounterKey] = Counter()
    for (key, _), hits in fields.daily.items():
        totals[key] += hits
    return Batch(
        id=claim.id,
        claim_number=fields.claim_number,
        run_id=claim.run_id,
        totals=totals,
        daily=fields.daily,
        refused=fields.refused,
        visitors=read_sketches(redis, names, fields.visitors),
        malformed=[*fields.malformed],
        is_left_over=claim.is_left_over,
    )


def build_settle_call(batch: Batch, run_id: str) -> ScriptCall:
    """Make the call that drops a batch, for a server whose run is ``run_id``."""
    partition = batch.id.partition
    names, current = run_keys(partition, batch.run_id), run_keys(partition, run_id)
    keys = [names.batch, current.epoch, names.malformed]
    return ScriptCall("settle", keys, [id_text(batch.id), *batch.malformed])


def id_text(batch_id: BatchId) -> str:
    """Return the text that Redis has for the id."""
    return f"{batch_id.generation}:{batch_id.number}"


class _Fields:
    """The fields of a batch, by what their first letters say."""

    def __init__(self) -> None:
        self.claim_number = 0
        self.daily: dict[tuple[CounterKey, datetime.date], int] = {}
        self.refused: dict[RefusedKey, int] = {}
        self.visitors: dict[DailyVisitorsKey, int] = {}
        self.malformed: dict[bytes, None] = {}

    def add(self, flat: Sequence[bytes]) -> None:
        """Add fields and values, which come in turn. Those without valid hits are malformed."""
        for field, value in zip(flat[::2], flat[1::2], strict=True):
            try:
                self._add(field.decode(), value)
            except ValueError:
                self.malformed[field] = None

    def _add(self, field: str, value: bytes) -> None:
        if field == "claim":
            self.claim_number = int(value)
        elif field.startswith("d:"):
            self.daily[parse_daily(field)] = _hits(value)
        elif field.startswith("v:"):
            self.visitors[parse_visitors(field)] = _hits(value)
        elif field.startswith("r:"):
            self.refused[parse_refused(field)] = _hits(value)
        elif field not in NAMES_AND_MOMENTS and not field.startswith("m:"):
            raise ValueError(f"unknown field: {field!r}")


def _hits(value: bytes) -> int:
    hits = int(value)
    if abs(hits) > HITS_LIMIT:
        raise ValueError(f"{hits} hits are too many")
    return hits
