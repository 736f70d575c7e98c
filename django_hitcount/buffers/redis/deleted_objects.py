"""Drop what Redis keeps of objects that were deleted."""

from __future__ import annotations

from collections.abc import Collection

from django_hitcount import conf
from django_hitcount.buffers.grouping import group_by_partition
from django_hitcount.buffers.redis import sketches
from django_hitcount.buffers.redis.guarded_redis import GuardedRedis
from django_hitcount.buffers.redis.kept_visitors import build_drops
from django_hitcount.buffers.redis.keys import run_keys
from django_hitcount.buffers.redis.link import Link
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.counters.keys import CounterKey, ObjectKey


def discard(redis: GuardedRedis, objects: Collection[ObjectKey], partitions: int) -> None:
    """
    Drop the running totals, the sketches and the kept numbers of visitors of objects.

    Does not drop pending hits: to find their fields, it would have to read all hits of the
    partition. A flush writes them into the tables, and they are deleted there.
    """
    counters = conf.get_config().counters
    groups = group_by_partition(map(_any_counter, objects), partitions)
    sketches_by_partition = sketches.find_names(redis, groups)

    def build(link: Link) -> list[ScriptCall]:
        run_id = link.run_id
        calls = build_drops(map(_any_counter, objects), partitions, run_id)
        for partition, keys in groups.items():
            names = run_keys(partition, run_id)
            totals = [names.total(key._replace(counter=c).text) for key in keys for c in counters]
            gone = [*totals, *sketches_by_partition[partition]]
            calls.append(ScriptCall("discard", [names.epoch, *gone]))
        return calls

    if groups:
        redis.send_to_run(build)


def _any_counter(object_key: ObjectKey) -> CounterKey:
    """Make a counter key from an object key, for calls that only use the object."""
    return CounterKey(*object_key, "")
