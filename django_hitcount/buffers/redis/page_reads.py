"""Read all numbers of a page in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from django_hitcount.buffers.grouping import group_by_partition
from django_hitcount.buffers.redis import kept_visitors
from django_hitcount.buffers.redis.keys import database_prefix
from django_hitcount.buffers.redis.link import Link, Reply
from django_hitcount.buffers.redis.scripts import ScriptCall
from django_hitcount.buffers.redis.totals import RunningTotals, build_state_reads, number_epochs
from django_hitcount.counters.batches import BufferState, FlushPosition
from django_hitcount.counters.page_numbers import BufferNumbers, LastDays, SpanCount, Wanted
from django_hitcount.exceptions import BufferUnavailable


class PageRead:
    """The commands that read what a page wants, and the meaning of their replies."""

    def __init__(self, wanted: Wanted, partitions: int) -> None:
        self._totals = group_by_partition(wanted.totals, partitions)
        self._ranges = kept_visitors.group_ranges(wanted.visitors, partitions)

        self._built: tuple[tuple[str, str], list[ScriptCall], list[ScriptCall]] = ("", ""), [], []

    def build(self, link: Link) -> list[ScriptCall]:
        """Make the calls. Makes those for one database and run only once, but for a number."""
        built_for, of_totals, of_ranges = self._built
        run_id = link.run_id
        wanted = database_prefix(), run_id
        if built_for != wanted:
            of_totals = build_state_reads(self._totals, run_id)
            of_ranges = [kept_visitors.build_read(group, run_id) for group in self._ranges]
            self._built = wanted, of_totals, of_ranges
        return [*number_epochs(of_totals), *of_ranges]

    def convert(
        self, running: RunningTotals, run_id: str, replies: Sequence[Reply]
    ) -> BufferNumbers:
        """Convert the last of ``replies``. If one is missing, nothing is known."""
        size = len(self._totals) + len(self._ranges)
        replies = replies[max(len(replies) - size, 0) :]
        if any(isinstance(reply, BufferUnavailable) for reply in replies):
            return BufferNumbers()
        at = len(self._totals)
        known: dict[LastDays, SpanCount] = {}
        unkept: dict[LastDays, FlushPosition] = {}
        for group, reply in zip(self._ranges, replies[at:], strict=True):
            kept_visitors.add_reply(group, reply, run_id, known, unkept)
        state = BufferState()
        if at:
            state = running.read_state_replies(self._totals, run_id, replies[:at])
        return BufferNumbers(state=state, visitors=known, unkept=unkept)


@lru_cache(maxsize=1024)
def read_for_page(wanted: Wanted, partitions: int) -> PageRead:
    """Return the PageRead of what a page wants. Pages of one object want the same ``wanted``."""
    return PageRead(wanted, partitions)
