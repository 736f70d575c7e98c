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

The process that wrote the batch sends it, once, and waits for the receivers: hand long work to a
task. If the process dies just after the COMMIT, or does not get its answer, nobody sends it.
Without Redis, nothing is flushed, and it is never sent.

Arguments:
    sender: the class of the buffer.
    totals: how many hits the batch adds, as a dict by (content_type_id, object_id, counter). The
        ``object_id`` is a text. A child model has the content type of its topmost parent.
    daily: the same by day: by ((content_type_id, object_id, counter), day).
"""

hit_refused = Signal()
"""
Sent when a hit has been recorded as refused, which in a transaction is after the COMMIT.

The page waits for the receivers. Without receivers, it costs nothing. It is not sent for a hit that
is lost ("unavailable"), for an object that is not saved, nor for a template without a request.

Arguments:
    sender: the model of the object.
    obj: the object that was hit.
    counter: the name of the counter.
    refusal: the name of the reason, as in ``Hit.refusal``.
    request: the request that brought the hit.
"""
