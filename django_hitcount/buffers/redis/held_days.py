"""
What waits in Redis: the hits of some days, and how much it is in all.

A script reads the hits of a partition together with the ids of their batches: that of the batch
that is set aside, and that which the pending hits get. If the ledger has an id when the tables are
read afterwards, its hits are in the tables already.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from django_hitcount.buffers.redis.claiming import parse_runs, read_held_id
from django_hitcount.buffers.redis.keys import all_runs, run_keys
from django_hitcount.buffers.redis.link import Link, Reply
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.counters.batches import CounterDay, HeldHits, Waiting
from django_hitcount.counters.keys import CounterKey
from django_hitcount.exceptions import BufferUnavailable

Wanted = Sequence[str]
"""The arguments of held_days.lua."""

LabelT = TypeVar("LabelT", bound=Hashable)

PartitionInRun = tuple[int, str]

ObjectsOf = tuple[int, str]
"""A content type and the name of a counter."""


class Question(NamedTuple, Generic[LabelT]):
    """Which hits of a partition to read, and how to label them."""

    partition: int
    label: LabelT
    wanted: Wanted


def read_of_counters(
    redis: RedisServer,
    groups: Mapping[int, Iterable[CounterKey]],
    first_day: datetime.date,
    last_day: datetime.date,
    *,
    by_key: bool,
) -> list[HeldHits[Any]]:
    """
    Read the hits of counters, which are given by partition; none if Redis does not answer.

    Returns them by day and name of the counter; with ``by_key``, by day and counter of an object.

    Costs one round trip. While there are hits of earlier runs of Redis, costs one more.
    """
    wanted = [
        Question(partition, label, _want(*of, first_day, last_day, object_ids))
        for partition, keys in groups.items()
        for label, of, object_ids in (_label_each if by_key else _label_by_name)(keys)
    ]

    def build(link: Link) -> list[ScriptCall]:
        return [_build_call(link.run_id, question) for question in wanted]

    with suppress(BufferUnavailable):
        run_id, replies = redis.send_to_run(build)
        earlier = [
            (other, question)
            for question, reply in zip(wanted, replies, strict=True)
            for other in parse_runs(reply[2]) - {run_id}
        ]
        replies = [*replies, *redis.send([_build_call(*item) for item in earlier])]
        return _parse([*wanted, *(question for _, question in earlier)], replies)
    return []


def read_of_model(
    redis: RedisServer,
    content_type_id: int | None,
    counter: str,
    first_day: datetime.date,
    last_day: datetime.date,
) -> list[HeldHits[CounterDay]]:
    """
    Read the hits of a model, or of all models; none if Redis does not answer.

    Costs two round trips.
    """
    wanted = _want(content_type_id, counter, first_day, last_day)
    with suppress(BufferUnavailable):
        asked = [(run, Question(p, counter, wanted)) for p, run in read_places(redis)]
        replies = redis.send([_build_call(*item) for item in asked])
        return _parse([question for _, question in asked], replies)
    return []


def read_waiting(redis: RedisServer) -> Waiting:
    """Read what waits in all partitions. Costs two round trips. Raises BufferUnavailable."""
    names = [run_keys(*place) for place in read_places(redis)]
    replies = redis.send([ScriptCall("waiting", [own.pending, own.batch]) for own in names])
    return Waiting(
        counters=sum(counters for counters, *_ in replies),
        oldest_at=_first(
            seconds for _, pending, batch, _ in replies for seconds in (pending, batch)
        ),
        claimed_at=_first(claimed for *_, claimed in replies),
    )


def _first(seconds: Iterable[int | None]) -> datetime.datetime | None:
    """Return the earliest moment, of those that are known."""
    known = [moment for moment in seconds if moment is not None]
    return datetime.datetime.fromtimestamp(min(known), tz=datetime.UTC) if known else None


def read_places(redis: RedisServer) -> list[PartitionInRun]:
    """Find out which partitions may hold hits, of which runs. Costs a round trip."""
    return [(p, run_id) for p, runs in enumerate(read_runs(redis)) for run_id in parse_runs(runs)]


def read_runs(redis: RedisServer) -> list[bytes | None]:
    """Read the runs of which each partition may hold hits. Costs a round trip."""
    (runs,) = redis.send([("MGET", *all_runs())])
    found: list[bytes | None] = runs
    return found


def _want(
    content_type_id: int | None,
    counter: str,
    first_day: datetime.date,
    last_day: datetime.date,
    object_ids: Iterable[str] = (),
) -> Wanted:
    of = "" if content_type_id is None else str(content_type_id)
    return [counter, first_day.isoformat(), last_day.isoformat(), of, *object_ids]


def _label_each(keys: Iterable[CounterKey]) -> Iterator[tuple[CounterKey, ObjectsOf, list[str]]]:
    """Yield each counter as a label, with its content type, its name, and the id of its object."""
    for key in keys:
        yield key, (key.content_type_id, key.counter), [key.object_id]


def _label_by_name(keys: Iterable[CounterKey]) -> Iterator[tuple[str, ObjectsOf, list[str]]]:
    """Yield the names of counters as labels, with a content type, the name, and all its objects."""
    groups: dict[ObjectsOf, list[str]] = {}
    for key in keys:
        groups.setdefault((key.content_type_id, key.counter), []).append(key.object_id)
    for of, object_ids in groups.items():
        yield of[1], of, object_ids


def _build_call(run_id: str, question: Question[Any]) -> ScriptCall:
    names = run_keys(question.partition, run_id)
    return ScriptCall("held_days", [names.pending, names.batch, names.runs], question.wanted)


def _parse(
    asked: Iterable[Question[LabelT]], replies: Iterable[Reply]
) -> list[HeldHits[tuple[LabelT, datetime.date]]]:
    found = []
    for (partition, label, _), reply in zip(asked, replies, strict=True):
        claimed, next_id, _, pending, batch = reply
        for name, hits in ((claimed, batch), (next_id, pending)):
            found.append(HeldHits(read_held_id(name, partition), _parse_days(label, hits)))
    return [held for held in found if held.hits]


def _parse_days(label: LabelT, flat: Sequence[bytes]) -> Counter[tuple[LabelT, datetime.date]]:
    hits: Counter[tuple[LabelT, datetime.date]] = Counter()
    for day, amount in zip(flat[::2], flat[1::2], strict=True):
        with suppress(ValueError):  # Not a day: we did not write it.
            hits[label, datetime.date.fromisoformat(day.decode())] += int(amount)
    return hits
