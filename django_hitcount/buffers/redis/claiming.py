"""
Batches of RedisBuffer: claim them, read them, and drop them when they are in the tables.

A run is the time of a Redis server from one start to the next. The hits of each run have their own
keys.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from django_hitcount.buffers.redis import sketches
from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.keys import PartitionKeys, run_keys
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.transport import Reply
from django_hitcount.counters.batches import Batch, BatchId
from django_hitcount.counters.parsing import parse_daily, parse_key, parse_refused, parse_visitors

SCAN_COUNT = 2000
"""Fields that are read from a batch at a time. Each answer arrives well within the timeout."""

HITS_LIMIT = 10**15
"""The most hits of a counter in a batch. More are malformed: a sum of batches must fit a bigint."""

BATCH_NAME = re.compile(rb"([A-Za-z0-9:]{1,100}):(0|[1-9][0-9]{0,14})")
"""As in lua/foreign_values.lua. A text that does not match was not written by us."""

T = TypeVar("T")


logger = logging.getLogger("django_hitcount")


class Claim(NamedTuple):
    """A batch that is set aside."""

    id: BatchId
    run_id: str
    is_left_over: bool


def claim(redis: GuardedRedis, partition: int) -> Claim | None:
    """
    Set the pending hits of a partition aside as a batch, those of earlier runs first.

    If a batch is set aside already, returns that one. Costs one round trip, and one more for each
    earlier run.
    """
    sent = redis.send_to_run(
        lambda run_id: [
            ("MGET", PartitionKeys(partition).runs),
            *_build_claim_calls(partition, run_id, of_run=run_id),
        ]
    )
    (runs,), reply = sent.replies
    for earlier in parse_runs(runs) - {sent.run_id}:
        left = redis.send_to_run(partial(_build_claim_calls, partition, of_run=earlier))
        if found := _read_claim(left.replies[0], partition, earlier):
            return found._replace(is_left_over=True)
    return _read_claim(reply, partition, sent.run_id)


def _build_claim_calls(partition: int, run_id: str, *, of_run: str) -> list[ScriptCall]:
    current, names = run_keys(partition, run_id), run_keys(partition, of_run)
    keys = [current.epoch, names.batch_id, names.sequence, *names.pendings, *names.batches]
    generation = f"{of_run}:{uuid.uuid4().hex}"
    earlier_run = "" if of_run == run_id else of_run
    keys += names.runs, names.malformed, names.epoch
    return [ScriptCall("claim", keys, [generation, earlier_run])]


def _read_claim(reply: Reply, partition: int, run_id: str) -> Claim | None:
    text, is_new, moved = reply
    for name in moved:
        message = "Partition %d had a key that django_hitcount did not write. It is now named %r."
        logger.error(message, partition, name)
    batch_id = read_batch_id(text, partition)
    return Claim(batch_id, run_id, is_left_over=not is_new) if batch_id else None


def parse_runs(reply: bytes | None) -> set[str]:
    """Return the runs of which a partition may hold hits."""
    return set((reply or b"").decode(errors="replace").split())


def read_batch_id(text: bytes | None, partition: int) -> BatchId | None:
    """Parse the id of the batch that is set aside; None without a text that we wrote."""
    found = BATCH_NAME.fullmatch(text or b"")
    return BatchId(partition, found[1].decode(), int(found[2])) if found else None


def read(redis: GuardedRedis, claim: Claim) -> Batch:
    """Read a claimed batch. Costs a round trip per 2,000 fields and per 100 sketches."""
    names = run_keys(claim.id.partition, claim.run_id)
    totals, odd = _read_fields(parse_key, scan(redis, names.batch))
    daily, odd_daily = _read_fields(parse_daily, scan(redis, names.batch_daily))
    refused, odd_refused = _read_fields(parse_refused, scan(redis, names.batch_refused))
    touched, odd_touched = _read_fields(parse_visitors, scan(redis, names.batch_visitors))
    if claim.is_left_over:
        # Redis may have been restarted since, with older sketches than those in the table.
        touched = dict.fromkeys(touched, 1)
    return Batch(
        id=claim.id,
        run_id=claim.run_id,
        totals=totals,
        daily=daily,
        refused=refused,
        visitors=sketches.read(redis, names, touched),
        malformed=[*odd, *odd_daily, *odd_refused, *odd_touched],
        is_left_over=claim.is_left_over,
    )


def scan(redis: GuardedRedis, name: str) -> Iterable[tuple[bytes, bytes]]:
    """Yield the fields and values of a hash. Reads some of them at a time."""
    cursor: bytes | int = 0
    while True:
        ((cursor, flat),) = redis.send([("HSCAN", name, cursor, "COUNT", SCAN_COUNT)])
        yield from zip(flat[::2], flat[1::2], strict=True)
        if int(cursor) == 0:
            return


def build_settle_call(batch: Batch, run_id: str) -> ScriptCall:
    """Make the call that drops a batch, for a server whose run is ``run_id``."""
    partition = batch.id.partition
    names, current = run_keys(partition, batch.run_id), run_keys(partition, run_id)
    keys = [names.batch_id, current.epoch, names.malformed, *names.batches]
    return ScriptCall("settle", keys, [id_text(batch.id), *batch.malformed])


def id_text(batch_id: BatchId) -> str:
    """Return the text that Redis has for the id."""
    return f"{batch_id.generation}:{batch_id.number}"


def _read_fields(
    parse: Callable[[str], T], pairs: Iterable[tuple[bytes, bytes]]
) -> tuple[dict[T, int], list[bytes]]:
    """Return the amounts by parsed field, and the malformed fields."""
    amounts: dict[T, int] = {}
    malformed: list[bytes] = []
    for field, value in pairs:
        try:
            amounts[parse(field.decode())] = _hits(value)
        except ValueError:
            malformed.append(field)
    return amounts, malformed


def _hits(value: bytes) -> int:
    hits = int(value)
    if abs(hits) > HITS_LIMIT:
        raise ValueError(f"{hits} hits are too many")
    return hits
