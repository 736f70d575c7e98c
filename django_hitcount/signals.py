"""Signals that django_hitcount sends."""

from __future__ import annotations

from django.dispatch import Signal

__all__ = ["hit_refused", "hits_flushed"]

partition_full = Signal()
"""
For this app alone. Sent when hits of more than FLUSH_THRESHOLD counters wait in a partition.

The process that recorded the hit sends it, with send_robust(), once until the next flush. An error
in a receiver does not reach the page, but the page waits for the receivers.

Arguments:
    sender: the class of the buffer.
    partition: the number of the partition, which flush_hits() takes.
"""

hits_flushed = Signal()
"""
Sent when a flush has written a batch of hits into the tables, after its COMMIT.

It is sent once for each batch, by the process that wrote it, with send_robust(): an error of a
receiver is logged, and the flush goes on. The flush waits for the receivers. If the process dies
just after the COMMIT, or does not get its answer, nobody sends it. Without Redis nothing is
flushed, and it is never sent.

Arguments:
    sender: the class of the buffer.
    totals: how many hits the batch has, as a dict by (content_type_id, object_id, counter).
    daily: the same by ((content_type_id, object_id, counter), day).
"""

hit_refused = Signal()
"""
Sent when a hit has been recorded as refused, so after the COMMIT if there is a transaction.

It is sent by the process that recorded the hit, with send_robust(): an error of a receiver is
logged and does not reach the page, but the page waits for the receivers. It costs nothing without
receivers. It is not sent for "unavailable": that hit is lost.

Arguments:
    sender: the model of the object.
    obj: the object that was hit.
    counter: the name of the counter.
    refusal: the name of the reason.
    request: the request that brought the hit.
"""
