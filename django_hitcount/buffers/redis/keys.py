"""
The names of all Redis keys.

All begin with the database that the hits are flushed into. So a test run, a staging site or another
project in the same Redis has keys of its own, as it has tables of its own.

The keys of a partition share a slot of Redis Cluster. The fields of its hashes are those of the
keys in counters/keys.py, such as CounterKey.on().
"""

from __future__ import annotations

import datetime
import hashlib
import uuid
from functools import lru_cache
from pathlib import Path

from django.db import connections

from django_hitcount.conf import MOST_PARTITIONS
from django_hitcount.db.tables import hits_alias

VISITORS_SECONDS = 3 * 24 * 3600
"""How long Redis keeps what it knows of the visitors of a day, from the first of them on. These are
the day itself, and two more, in which late hits of that day may come and a flush may fail."""

THIS_PROCESS = uuid.uuid4().hex
"""Tells databases in memory apart: those of two processes have the same name."""


def database_prefix() -> str:
    """
    Return how all keys begin: "hitcount:", 8 letters for the database of the counts, and a colon.

    The letters are a hash of its NAME, and of nothing else: hits that wait are found again when the
    database moves to another host. A database in memory ends with its process.
    """
    # The settings that all connections to the database share: finding that of this thread takes
    # three times as long.
    return _prefix_of(connections.settings[hits_alias()]["NAME"])


@lru_cache(maxsize=64)
def _prefix_of(setting: str | Path) -> str:
    name = str(setting)
    is_in_memory = ":memory:" in name or "mode=memory" in name
    text = f"{name}\0{THIS_PROCESS}" if is_in_memory else name
    return f"hitcount:{hashlib.sha256(text.encode()).hexdigest()[:8]}:"


def throttle_key(name: str) -> str:
    """Return the name of the key that exists while a throttle admits nobody."""
    return f"{database_prefix()}throttle:{name}"


class PartitionKeys:
    """
    The names of those keys of one partition that stay in use after a restart of Redis.

    The number in braces is the hash tag: Redis Cluster keeps all keys with the same tag on one
    node, so one script can use them all.
    """

    def __init__(self, partition: int) -> None:
        self._prefix = prefix = f"{database_prefix()}{{{partition}}}:"
        self.runs = f"{prefix}runs"
        """The ids of the runs of which this partition may hold hits. See RunKeys."""

        self.malformed = f"{prefix}malformed"
        self.scratch = (f"{prefix}scratch", f"{prefix}scratch_given")
        """Keys that exist only within a script: what it merges into, and a sketch of the table."""

        self.sketches = f"{prefix}visitors:"
        """The beginning of the names of all sketches."""

    def repeat(self, visitor: bytes) -> str:
        """Return the name of the key that exists while the hits of a visitor are repeats."""
        return f"{self._prefix}repeat:{visitor.hex()}"

    def seen(self, day: datetime.date, key_id: str) -> str:
        """Return the name of the filter with the visitors who were counted on a day."""
        return f"{self._prefix}seen:{day.isoformat()}:{key_id}"

    def addresses(self, interval: str, share: int) -> str:
        """
        Return the name of a hash with the hits of some addresses in an interval.

        ``share`` is the first byte of their address hashes. It splits the addresses of a partition
        into 256 Redis hashes, because Redis stores small hashes in less memory: an address takes 16
        bytes, where a key of its own would take 100.
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
        self.pending = f"{prefix}pending"
        """The key with the hits that no flush has claimed yet: by counter and day (fields
        "d:..."), model and day ("m:..."), refusal ("r:..."), and the sketches of visitors that have
        changed ("v:..."). Further fields have the name of the batch that they become ("id"), how
        many counters there are, the models and days, and the moment of the first hit."""

        self.batch = f"{prefix}batch"
        """The key with the hits that a flush has claimed: it was ``pending`` until then."""

        self.sequence = f"{prefix}sequence"
        """The key with the name of the last batch that was claimed, and the number and the moment
        of the last command of each recorder."""

        self.epoch = f"{prefix}epoch"
        self._kept_visitors = f"{prefix}kept_visitors:"
        self._totals = f"{prefix}total:"
        self._merged_sketches = f"{prefix}merged_sketches:"
        self.for_record = (self.pending, self.batch, self.sequence, self.epoch, self.runs)
        """The keys that each call of ``lua/record.lua`` begins with."""

    def merged_sketches(self, day: datetime.date) -> str:
        """
        Return the name of the set of the sketches of a day that have changed in this run.

        After the first change, a flush merges a sketch with the one in the table.
        """
        return self._merged_sketches + day.isoformat()

    def total(self, field: str) -> str:
        """Return the name of the running total of the counter with this CounterKey.text."""
        return self._totals + field

    def kept_visitors_of(self, content_type_id: int, object_id: str) -> str:
        """Return the name of the hash with the kept numbers of visitors of an object."""
        return f"{self._kept_visitors}{content_type_id}:{object_id}"


@lru_cache(maxsize=64)
def _all_runs(prefix: str) -> list[str]:
    return [PartitionKeys(partition).runs for partition in range(MOST_PARTITIONS)]


def all_runs() -> list[str]:
    """Return the keys with the runs of each partition."""
    return _all_runs(database_prefix())


def run_keys(partition: int, run_id: str) -> RunKeys:
    """Return the RunKeys of a partition and a run. Creates each only once per database."""
    return _run_keys(database_prefix(), partition, run_id)


@lru_cache(maxsize=4 * MOST_PARTITIONS)
def _run_keys(prefix: str, partition: int, run_id: str) -> RunKeys:
    return RunKeys(partition, run_id)
