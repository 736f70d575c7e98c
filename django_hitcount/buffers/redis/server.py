"""
Send commands to Redis in one round trip. If it fails, find out whether they may have been run.

RunKeys explains what a run is.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from django.core.cache import InvalidCacheBackendError
from django_redis import get_redis_connection
from hiredis import HiredisError
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from django_hitcount import conf
from django_hitcount.buffers.redis.connections import bound_waits
from django_hitcount.buffers.redis.link import (
    BuildCommands,
    BuiltCommand,
    ForeignValue,
    Link,
    Reply,
    make_answer_lost,
)
from django_hitcount.buffers.redis.scripts import Command, ScriptCall
from django_hitcount.counters import split
from django_hitcount.db.transactions import is_server_away
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages import Breaker, GuardedCall
from django_hitcount.outages.waits import Deadline, deadline, seconds_left

T = TypeVar("T")

ITEMS_AT_A_TIME = 500
"""Counters or objects whose keys are written or dropped in one round trip."""


class RunReplies(NamedTuple):
    """The replies of a server, and its run."""

    run_id: str
    replies: list[Reply]


_idle_links: dict[Any, deque[Link]] = {}
"""By pool. When a setting changes, the buffer is created again, and the pool stays."""


class RedisServer:
    """
    The server of a cache alias, behind a breaker: commands are sent unless it failed a moment ago.

    Redis clients do not report whether a command that failed was run. So this class opens a
    connection first. If that fails, nothing was sent, and it raises BufferUnavailable. If something
    fails later, it returns AnswerLost: the command may have been run.
    """

    def __init__(self, alias: str, *, timeout_seconds: float) -> None:
        self._pool = _connection_pool(alias)
        _limit_waits(self._pool, timeout_seconds)
        self.timeout_seconds: float = self._pool.connection_kwargs["socket_timeout"]
        """Longest wait for the answers to one call, including the time to connect."""
        self.breaker = Breaker(
            f"Redis (cache alias {alias!r})",
            timeout_seconds=self.timeout_seconds,
            is_failure=lambda error: is_server_away(error) and not isinstance(error, ForeignValue),
        )
        self.deliver_oldest: Callable[[], bool] = lambda: True
        """Delivers what the server missed first. Returns False if that must wait."""

        self._is_behind = False
        """Whether the server is back, and lacks what it missed."""

        self._idle = _idle_links.setdefault(self._pool, deque())

    def send(self, commands: Sequence[ScriptCall | Command]) -> list[Reply]:
        """Send commands that do not depend on the run of the server; see send_to_run()."""
        return self.send_to_run(lambda link: commands).replies if commands else []

    def send_to_run(self, build: BuildCommands) -> RunReplies:
        """
        Send commands for the current run of the server, in one round trip.

        Raises BufferUnavailable if one of the commands was rejected or not answered.
        """
        sent = self.try_to_send(build, commands=1)
        raise_failures(sent.replies)
        return sent

    def send_in_pieces(
        self, items: Iterable[T], build: Callable[[Sequence[T], str], Sequence[BuiltCommand]]
    ) -> None:
        """
        Send what ``build`` makes of 500 items at a time, and of the current run.

        Costs a round trip per piece. Raises BufferUnavailable.
        """
        for some in split([*items], ITEMS_AT_A_TIME):
            self.send_to_run(lambda link, some=some: build(some, link.run_id))  # type: ignore[misc]

    def try_to_send(self, build: BuildCommands, *, commands: int) -> RunReplies:
        """
        As send_to_run(), but return an exception in place of each reply that is missing.

        If nothing was sent, returns as many exceptions as there are ``commands``. Those are the
        ones that record: what a page reads may follow them. When the server is back, delivers the
        oldest of what it missed before it sends these.
        """
        sent: RunReplies | None = None
        try:
            with GuardedCall(self.breaker) as is_back:
                if is_back or self._is_behind:
                    self._catch_up()
                sent = self.send_unguarded(build)
                failed = [reply for reply in sent.replies if isinstance(reply, BufferUnavailable)]
                if failed:
                    # Another failure first: a foreign value leaves the breaker closed.
                    raise min(failed, key=lambda reply: isinstance(reply, ForeignValue))
        except BufferUnavailable as exc:
            # If ``sent`` is None, these commands were not sent, even if ``exc`` is an AnswerLost:
            # that was about the commands that catch up.
            return sent or RunReplies("", [BufferUnavailable(str(exc))] * commands)
        return sent

    def fall_behind(self) -> None:
        """Let the next call catch up: the server lacks hits that are in the tables."""
        self._is_behind = True

    def _catch_up(self) -> None:
        """Deliver the oldest missed hits, before the server returns wrong totals."""
        self._is_behind = True
        self._is_behind = not self.deliver_oldest()

    def send_unguarded(self, build: BuildCommands) -> RunReplies:
        """
        Send the commands that ``build`` makes in one round trip, whatever the breaker says.

        In place of a reply, there is a BufferUnavailable if the command was rejected, and an
        AnswerLost if its answer was lost. Raises BufferUnavailable if nothing was sent.

        Waits until the current deadline, or for at most timeout_seconds if no deadline is set.
        """
        if deadline.get() is None:
            with Deadline(self.timeout_seconds):
                return self.send_unguarded(build)
        link = self._take()
        commands: Sequence[BuiltCommand] = ()
        replies: list[Reply] = []
        is_in_step = False
        try:
            commands = build(link)
            while not link.exchange(commands, replies):
                commands = build(link)
            is_in_step = True
            run_id = link.run_id  # As soon as the link is given back, another thread may open it.
        except (HiredisError, OSError) as exc:
            run_id = link.run_id
            replies += [make_answer_lost(exc)] * (len(commands) - len(replies))
        finally:
            if is_in_step:
                self._idle.append(link)
            else:
                link.close()  # The next command must not read an answer to these.
        return RunReplies(run_id, replies)

    def _take(self) -> Link:
        """
        Take the link that was used last. Raises BufferUnavailable if it cannot be opened.

        Links are kept here. To get a connection from the pool would take as long as an answer from
        Redis.
        """
        try:
            link = self._idle.pop()
            while link.pid != os.getpid():  # Of the parent. uWSGI forks without Python's hooks.
                link = self._idle.pop()
        except IndexError:
            link = Link(self._pool)
        if not link.is_usable():
            self._open(link)
        return link

    def _open(self, link: Link) -> None:
        try:
            link.open()
            if seconds_left() == 0:
                raise TimeoutError("opening a connection took too long")
        except (HiredisError, RedisError, OSError) as exc:
            self._idle.append(link)
            raise BufferUnavailable(f"Redis cannot be reached: {exc}") from exc


def _connection_pool(alias: str) -> Any:
    try:
        return get_redis_connection(alias).connection_pool
    except (InvalidCacheBackendError, NotImplementedError, ValueError) as exc:
        raise conf.SettingError(
            "REDIS",
            f"Invalid value for HITCOUNT['REDIS']: {alias!r} is not a cache of django-redis "
            f"that can be used ({exc}).",
            "Add it to CACHES with the BACKEND 'django_redis.cache.RedisCache' and a LOCATION "
            "such as 'redis://127.0.0.1:6379/1'.",
        ) from exc


def _limit_waits(pool: Any, seconds: float) -> None:
    """Limit the waits of a page to the timeouts of the pool, or to ``seconds`` if it has none."""
    bound_waits(pool)
    options = pool.connection_kwargs
    for name in ("socket_timeout", "socket_connect_timeout"):
        if options.get(name) is None:
            options[name] = seconds
        if f"orig_{name}" in options:
            options[f"orig_{name}"] = options[name]  # redis-py restores it after a maintenance.
    if hasattr(pool, "timeout"):  # The wait for a connection when all are in use.
        pool.timeout = min(pool.timeout or seconds, seconds)
    for sentinel in getattr(getattr(pool, "sentinel_manager", None), "sentinels", ()):
        sentinel.connection_pool.connection_kwargs["retry"] = Retry(NoBackoff(), 0)
        _limit_waits(sentinel.connection_pool, seconds)


def raise_failures(replies: list[Reply]) -> list[Reply]:
    """Return ``replies``. Raise the first BufferUnavailable among them, if there is one."""
    for reply in replies:
        if isinstance(reply, BufferUnavailable):
            raise reply
    return replies
