"""Signals that django_hitcount sends."""

from __future__ import annotations

from django.dispatch import Signal

partition_full = Signal()
"""
Sent when hits of more than FLUSH_THRESHOLD counters wait in a partition of Redis.

It is sent once until the next flush, by the process that recorded the hit, with send_robust():
an error of a receiver does not reach the page, but the page waits for the receivers.

Arguments:
    sender: the class of the buffer.
    partition: the number of the partition, which flushing.flush() takes.
"""
