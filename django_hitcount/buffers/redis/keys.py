"""The names of all Redis keys. Those of one partition share a Redis Cluster slot."""

from __future__ import annotations

import datetime
import uuid
from functools import lru_cache

from django_hitcount.conf import MOST_PARTITIONS

VISITORS_SECONDS = 3 * 24 * 3600
"""How long Redis keeps what it knows of the visitors of a day, from the first of them on: for
that day, and for two more in which a hit of that day may come late or a flush may not run."""

KINDS = ("", "_daily", "_refused", "_visitors")
"""Of the hashes that a flush moves: hits, hits by day, refused hits, and changed sketches."""


def throttle_key(name: str) -> str:
    """The key that exists for as long as a throttle admits nobody else."""
    return f"hitcount:throttle:{name}"


class PartitionKeys:
    """
    The keys of one partition that outlive a restart of Redis.

    Braces make ``p`` the hash tag: Redis Cluster keeps the keys on one node, where one
    script may touch them all.
    """

    def __init__(self, partition: int) -> None:
        self._prefix = prefix = f"hitcount:{{{partition}}}:"
        self.runs = f"{prefix}runs"
        """The ids of the server runs under which this partition may hold hits."""

        self.malformed = f"{prefix}malformed"
        self.scratch = (f"{prefix}scratch", f"{prefix}scratch_given")
        self.sketches = f"{prefix}visitors:"
        """What the names of all sketches begin with."""

    def recorder(self, recorder: uuid.UUID) -> str:
        """The number of the last command of a recorder that was run."""
        return f"{self._prefix}recorder:{recorder.hex}"

    def repeat(self, visitor: bytes) -> str:
        """The key that exists for as long as a visitor does not count again."""
        return f"{self._prefix}repeat:{visitor.hex()}"

    def seen(self, day: datetime.date, key_id: str) -> str:
        """The filter of the visitors who have been counted on a day."""
        return f"{self._prefix}seen:{day.isoformat()}:{key_id}"

    def addresses(self, interval: str, share: int) -> str:
        """A share of the addresses counted in an interval: a small hash takes little memory."""
        return f"{self._prefix}addresses:{interval}:{share:02x}"

    def sketch(self, field: str) -> str:
        """The HyperLogLog of the visitors with this field."""
        return self.sketches + field

    def sketches_of(self, content_type_id: int, object_id: str) -> str:
        """The set of the names of all sketches of an object."""
        return f"{self._prefix}sketches_of:{content_type_id}:{object_id}"


class RunKeys(PartitionKeys):
    """
    The keys of one partition, with those of one run of the server.

    A Redis that restarts may go back in time: to a snapshot, or to the state of a replica.
    What it holds then may have been flushed before. New hits go under the names of the new
    run, so that the two are never mixed.
    """

    def __init__(self, partition: int, run_id: str) -> None:
        super().__init__(partition)
        prefix = f"{self._prefix}{run_id}:"
        self.pendings = tuple(f"{prefix}pending{kind}" for kind in KINDS)
        self.batches = tuple(f"{prefix}batch{kind}" for kind in KINDS)
        self.pending, self.pending_daily, self.pending_refused, self.pending_visitors = (
            self.pendings
        )
        self.batch, self.batch_daily, self.batch_refused, self.batch_visitors = self.batches
        self.of_objects = tuple(
            name for name in (*self.pendings, *self.batches) if not name.endswith("_refused")
        )
        """Those whose fields name objects."""

        self.batch_id = f"{prefix}batch_id"
        self.epoch = f"{prefix}epoch"
        self.sequence = f"{prefix}sequence"
        """The name of the last batch that was claimed; the next one is numbered after it."""

        self.merged_sketches = f"{prefix}merged_sketches"
        """The sketches that a flush of this run merges with what the table has."""

        self._totals = f"{prefix}total:"
        self.for_record = (
            *self.pendings,
            self.malformed,
            self.epoch,
            self.batch_id,
            self.sequence,
            self.runs,
            self.merged_sketches,
        )

    def total(self, field: str) -> str:
        """The running total of the counter with this field."""
        return self._totals + field


run_keys = lru_cache(maxsize=4 * MOST_PARTITIONS)(RunKeys)
"""RunKeys, made once for each partition and run."""
