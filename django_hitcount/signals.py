"""Signals that django_hitcount sends."""

from __future__ import annotations

from django.dispatch import Signal

__all__ = ["partition_full"]

partition_full = Signal()
"""
Sent when hits of more than FLUSH_THRESHOLD counters wait in a partition of Redis.

The process that recorded the hit sends it, with send_robust(), once until the next flush. An error
in a receiver does not reach the page, but the page waits for the receivers.

Arguments:
    sender: the class of the buffer.
    partition: the number of the partition, which flushing.flush() takes.
"""
