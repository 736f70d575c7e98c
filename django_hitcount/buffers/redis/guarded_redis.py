"""Redis behind a breaker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django_hitcount.buffers.redis.link import BuildCommands, ForeignValue, Reply
from django_hitcount.buffers.redis.scripts import Command, ScriptCall
from django_hitcount.buffers.redis.transport import RedisTransport, RunReplies, raise_failures
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.breaker import Breaker

DeliverOldest = Callable[[], bool]
"""Delivers what Redis missed first. Returns False if that must wait."""


class GuardedRedis:
    """
    Sends commands to Redis, unless it failed a moment ago.

    When Redis is back, delivers the oldest of what it missed before sending other commands.
    """

    def __init__(
        self, transport: RedisTransport, breaker: Breaker, deliver_oldest: DeliverOldest
    ) -> None:
        self._transport = transport
        self._breaker = breaker
        self._deliver_oldest = deliver_oldest
        self._is_behind = False
        """Whether Redis is back, and lacks what it missed."""

    def send(self, commands: Sequence[ScriptCall | Command]) -> list[Reply]:
        """Send commands that do not depend on the run of Redis; see send_to_run()."""
        return self.send_to_run(lambda link: commands).replies if commands else []

    def send_to_run(self, build: BuildCommands) -> RunReplies:
        """
        Send commands for the current run of Redis, in one round trip.

        A run is the time from one start of the server to the next. Raises BufferUnavailable if one
        of the commands was rejected or not answered.
        """
        sent = self.try_to_send(build, commands=1)
        raise_failures(sent.replies)
        return sent

    def try_to_send(self, build: BuildCommands, *, commands: int) -> RunReplies:
        """
        As send_to_run(), but return an exception in place of each reply that is missing.

        If nothing was sent, returns as many exceptions as there are ``commands``.
        """
        sent: RunReplies | None = None
        try:
            with self._breaker.guard() as is_back:
                if is_back or self._is_behind:
                    self._catch_up()
                sent = self._transport.send(build)
                failed = [reply for reply in sent.replies if isinstance(reply, BufferUnavailable)]
                if failed:
                    raise min(failed, key=lambda reply: isinstance(reply, ForeignValue))
        except BufferUnavailable as exc:
            # If ``sent`` is None, these commands were not sent, even if ``exc`` is an AnswerLost:
            # that was about the commands that catch up.
            return sent or RunReplies("", [BufferUnavailable(str(exc))] * commands)
        return sent

    def fall_behind(self) -> None:
        """Let the next call catch up: Redis lacks hits that are in the tables."""
        self._is_behind = True

    def _catch_up(self) -> None:
        """Deliver the oldest missed hits, before Redis returns wrong totals."""
        self._is_behind = False
        is_done = False
        try:
            is_done = self._deliver_oldest()
        finally:
            if not is_done:
                self._is_behind = True
