"""Read all numbers of a page in one round trip."""

from __future__ import annotations

from collections.abc import Sequence

from django_hitcount.buffers.grouping import group_by_partition
from django_hitcount.buffers.redis import visitors
from django_hitcount.buffers.redis.keys import database_prefix
from django_hitcount.buffers.redis.link import Link, Reply
from django_hitcount.buffers.redis.scripts import ScriptCall, number_epochs
from django_hitcount.buffers.redis.totals import RunningTotals, build_state_reads
from django_hitcount.conf import cached_for_settings
from django_hitcount.counters.batches import BufferState
from django_hitcount.counters.numbers import NO_NUMBERS, BufferNumbers, Wanted
from django_hitcount.exceptions import BufferUnavailable


class PageRead:
    """The commands that read what a page wants, and the meaning of their replies."""

    def __init__(self, wanted: Wanted, partitions: int) -> None:
        # A total may be wanted twice: by the hit that is foreseen, and by a tag.
        self._totals = group_by_partition(dict.fromkeys(wanted.totals), partitions)
        ranges = [of for of in wanted.visitors if visitors.can_keep(of)]
        self._ranges = visitors.group_ranges(ranges, partitions)
        self.is_empty = not (self._totals or self._ranges)
        self._built: tuple[tuple[str, str], list[ScriptCall]] = ("", ""), []

    def build(self, link: Link) -> list[ScriptCall]:
        """Make the calls. Makes those for one database and run only once, but for a number."""
        built_for, calls = self._built
        run_id = link.run_id
        wanted = database_prefix(), run_id
        if built_for != wanted:
            calls = build_state_reads(self._totals, run_id)
            calls += visitors.build_reads(self._ranges, run_id)
            self._built = wanted, calls
        return number_epochs(calls)

    def convert(
        self, running: RunningTotals, run_id: str, replies: Sequence[Reply]
    ) -> BufferNumbers:
        """Convert the last of ``replies``. If one is missing, nothing is known."""
        size = len(self._totals) + len(self._ranges)
        replies = replies[max(len(replies) - size, 0) :]
        if any(isinstance(reply, BufferUnavailable) for reply in replies):
            return NO_NUMBERS
        at = len(self._totals)
        known, unkept = visitors.read_replies(self._ranges, run_id, replies[at:])
        state = BufferState()
        if at:
            state = running.read_state_replies(self._totals, run_id, replies[:at])
        return BufferNumbers(state=state, visitors=known, unkept=unkept)


@cached_for_settings("HITCOUNT", maxsize=1024)
def read_for_page(wanted: Wanted, partitions: int) -> PageRead:
    """Return the PageRead of what a page wants. Pages of one object want the same ``wanted``."""
    return PageRead(wanted, partitions)
