"""
The names of all Redis keys.

The keys of a partition share a slot of Redis Cluster. The fields of its hashes are the texts of the
keys in counters/keys.py, such as CounterKey.text.
"""

from __future__ import annotations

import datetime
import uuid
from functools import lru_cache

from django_hitcount.conf import MOST_PARTITIONS

VISITORS_SECONDS = 3 * 24 * 3600
"""How long Redis keeps what it knows of the visitors of a day, from the first of them on. These are
the day itself, and two more, in which late hits of that day may come and a flush may fail."""

KINDS = ("", "_daily", "_refused", "_visitors", "_models")
"""Ends of the names of the hashes that a flush moves. They have the hits by counter, the hits by
day, the refused hits, the names of sketches that have changed, and the hits by model and day. The
last one also has the moment of its first hit, and that of its claim."""


def throttle_key(name: str) -> str:
    """Return the name of the key that exists while a throttle admits nobody."""
    return f"hitcount:throttle:{name}"


class PartitionKeys:
    """
    The names of those keys of one partition that stay in use after a restart of Redis.

    The number in braces is the hash tag: Redis Cluster keeps all keys with the same tag on one
    node, so one script can use them all.
    """

    def __init__(self, partition: int) -> None:
        self._prefix = prefix = f"hitcount:{{{partition}}}:"
        self.runs = f"{prefix}runs"
        """The ids of the runs of which this partition may hold hits. See RunKeys."""

        self.malformed = f"{prefix}malformed"
        self.scratch = (f"{prefix}scratch", f"{prefix}scratch_given")
        self.sketches = f"{prefix}visitors:"
        """The beginning of the names of all sketches."""

    def recorder(self, recorder: uuid.UUID) -> str:
        """Return the name of the key with the number of the last command of a recorder."""
        return f"{self._prefix}recorder:{recorder.hex}"

    def repeat(self, visitor: bytes) -> str:
        """Return the name of the key that exists while the hits of a visitor are repeats."""
        return f"{self._prefix}repeat:{visitor.hex()}"

    def seen(self, day: datetime.date, key_id: str) -> str:
        """Return the name of the Bloom filter with the visitors who were counted on a day."""
        return f"{self._prefix}seen:{day.isoformat()}:{key_id}"

    def addresses(self, interval: str, share: int) -> str:
        """
        Return the name of a hash with the hits of some addresses in an interval.

        ``share`` is the first byte of their address hashes. It splits the addresses of a partition
        into 256 Redis hashes, because Redis stores small hashes in less memory.
        """
        return f"{self._prefix}addresses:{interval}:{share:02x}"

    def sketch(self, field: str) -> str:
        """Return the name of a sketch. ``field`` is the DailyVisitorsKey.text of its visitors."""
        return self.sketches + field

    def sketches_of(self, content_type_id: int, object_id: str) -> str:
        """Return the name of the set with the names of all sketches of an object."""
        return f"{self._prefix}sketches_of:{content_type_id}:{object_id}"


class RunKeys(PartitionKeys):
    """
    The names of the keys of one partition, including those of one run of the server.

    A run is the time from one start of the server to the next. When Redis restarts, it may go back
    in time: to a snapshot, or to the state of a replica. Some of the hits that it then has may have
    been flushed already. New hits get keys of the new run, so they never mix with these.
    """

    def __init__(self, partition: int, run_id: str) -> None:
        super().__init__(partition)
        prefix = f"{self._prefix}{run_id}:"
        self.pendings = tuple(f"{prefix}pending{kind}" for kind in KINDS)
        self.batches = tuple(f"{prefix}batch{kind}" for kind in KINDS)
        (
            self.pending,
            self.pending_daily,
            self.pending_refused,
            self.pending_visitors,
            self.pending_models,
        ) = self.pendings
        (
            self.batch,
            self.batch_daily,
            self.batch_refused,
            self.batch_visitors,
            self.batch_models,
        ) = self.batches
        self.of_objects = tuple(
            name
            for name in (*self.pendings, *self.batches)
            if not name.endswith(("_refused", "_models"))
        )
        """The hashes whose fields contain object ids."""

        self.batch_id = f"{prefix}batch_id"
        self.epoch = f"{prefix}epoch"
        self.sequence = f"{prefix}sequence"
        """The key with the id of the last batch that was claimed. The next id follows it."""

        self.merged_sketches = f"{prefix}merged_sketches"
        """Sketches that have changed in this run. After the first change, a flush merges a sketch
        with the one in the table."""

        self.kept_visitors = f"{prefix}kept_visitors:"
        """The beginning of the names of the hashes with the kept numbers of visitors of objects."""

        self.merged_days = f"{prefix}merged_days:"
        """The beginning of the names of the sketches that closed days were merged into."""

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
        """Return the name of the running total of the counter with this CounterKey.text."""
        return self._totals + field

    def kept_visitors_of(self, content_type_id: int, object_id: str) -> str:
        """Return the name of the hash with the kept numbers of visitors of an object."""
        return f"{self.kept_visitors}{content_type_id}:{object_id}"


run_keys = lru_cache(maxsize=4 * MOST_PARTITIONS)(RunKeys)
"""Return the RunKeys of a partition and a run. Creates each only once."""
