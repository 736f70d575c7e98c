"""The names of all Redis keys. Those of one partition share a Redis Cluster slot."""

from __future__ import annotations

import uuid
from typing import Final

PARTITION_COUNTS: Final = "hitcount:partitions"
"""A set of all values that PARTITIONS has had, so that no partition is left unflushed."""


class PartitionKeys:
    """
    The keys of one partition.

    Braces make ``p`` the hash tag: Redis Cluster keeps the keys on one node, where one
    script may touch them all.
    """

    def __init__(self, partition: int) -> None:
        prefix = f"hitcount:{{{partition}}}"
        self.pending = f"{prefix}:pending"
        self.pending_daily = f"{prefix}:pending_daily"
        self.batch = f"{prefix}:batch"
        self.batch_daily = f"{prefix}:batch_daily"
        self.batch_id = f"{prefix}:batch_id"
        self.epoch = f"{prefix}:epoch"
        self.malformed = f"{prefix}:malformed"
        self.for_record = (
            self.pending,
            self.pending_daily,
            self.malformed,
            self.epoch,
            self.batch_id,
        )
        self._total = f"{prefix}:total:"
        self._recorder = f"{prefix}:recorder:"

    def total(self, field: str) -> str:
        """The running total of the counter with this field."""
        return self._total + field

    def recorder(self, recorder: uuid.UUID) -> str:
        """The number of the last command that a recorder had run."""
        return self._recorder + recorder.hex
