"""One round trip to Redis, and what is known of it when it fails."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from django.core.cache import InvalidCacheBackendError
from django_redis import get_redis_connection
from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoScriptError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from django_hitcount import conf
from django_hitcount.buffers.redis.connections import bound
from django_hitcount.buffers.redis.scripts import Build, Command, ScriptCall
from django_hitcount.exceptions import AnswerLost, BufferUnavailable
from django_hitcount.outages.deadlines import Deadline, has_deadline, seconds_left

Reply = Any

REFUSED = (ResponseError, BusyLoadingError, AuthenticationError)
"""What redis-py raises for an answer that says no; all else is no answer."""


class Answers(NamedTuple):
    """The replies of a server, and which run of it gave them."""

    run_id: str
    replies: list[Reply]


class Line:
    """A connection, and the run of the server at its other end."""

    __slots__ = ("connection", "run_id")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.run_id = read_run_id(connection)


RUN_ID_LETTERS = 12
"""Of 40: two runs of a server share them once in 10^14 times."""


UNKNOWN_RUN = "unknown"
"""For a server that does not say: it is taken for one that never goes back in time."""


def read_run_id(connection: Any) -> str:
    """Ask a server which run of it this is; costs a round trip."""
    connection.send_command("INFO", "server")
    reply = _read(connection)
    found = re.search(rb"run_id:(\w+)", reply) if isinstance(reply, bytes) else None
    return found[1][:RUN_ID_LETTERS].decode() if found else UNKNOWN_RUN


class _Idle:
    """Connections of one pool that no command is under way on."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._pid = os.getpid()

    def pop(self) -> Line | None:
        """The one that was used last, or None."""
        if self._pid != os.getpid():
            self._lines, self._pid = deque(), os.getpid()  # A parent's are not a child's.
        try:
            return self._lines.pop()
        except IndexError:
            return None

    def push(self, line: Line) -> None:
        self._lines.append(line)


_IDLE: WeakKeyDictionary[Any, _Idle] = WeakKeyDictionary()
"""By pool, which outlives the buffer when a setting changes."""


class RedisTransport:
    """
    Sends commands over the connection pool of a cache alias.

    Redis clients cannot say whether a command that failed was run. Here a connection is
    had first: what fails before anything was sent raises BufferUnavailable, and what fails
    later is reported as AnswerLost.
    """

    def __init__(self, alias: str, *, timeout_seconds: float) -> None:
        self._pool = _connection_pool(alias)
        _limit_waits(self._pool, timeout_seconds)
        self.timeout_seconds: float = self._pool.connection_kwargs["socket_timeout"]
        """Longest wait for the answers of one call, connecting included."""
        self._idle = _IDLE.setdefault(self._pool, _Idle())

    def run(self, build: Build) -> Answers:
        """
        Send the commands that ``build`` makes in one round trip, and return a reply for each.

        A command that was refused has a BufferUnavailable in place of its reply, one whose
        answer was lost an AnswerLost. Raises BufferUnavailable if nothing was sent.

        Waits until the deadline that is set, or for timeout_seconds at most if there is none.
        """
        if has_deadline():
            return self._run_on(self._take(), build)
        with Deadline(self.timeout_seconds):
            return self._run_on(self._take(), build)

    def _run_on(self, line: Line, build: Build) -> Answers:
        commands: Sequence[ScriptCall | Command] = ()
        replies: list[Reply] = []
        is_in_step = False
        try:
            commands = build(line.run_id)
            while not _converse(line, commands, replies):
                commands = build(line.run_id)
            is_in_step = True
        except (RedisError, OSError) as exc:
            replies += [_lost(exc)] * (len(commands) - len(replies))
        finally:
            if is_in_step:
                self._idle.push(line)
            else:
                self._drop(line.connection)  # An answer that nobody read must not meet a question.
        return Answers(line.run_id, replies)

    def _take(self) -> Line:
        """
        A connection that is open; raises BufferUnavailable if there is none to be had.

        Those that were used are kept here, one for each command under way at a time: the
        pool takes as long to hand one out as Redis takes to answer.
        """
        try:
            while line := self._idle.pop():
                if _is_open(line.connection):
                    return line
                self._drop(line.connection)
            line = self._open()
        except (RedisError, OSError) as exc:
            raise BufferUnavailable(f"Redis cannot be reached: {exc}") from exc
        if seconds_left() == 0:
            self._drop(line.connection)
            raise BufferUnavailable("Redis cannot be reached: opening a connection took too long.")
        return line

    def _open(self) -> Line:
        connection = self._pool.get_connection()
        try:
            return Line(connection)
        except BaseException:
            self._drop(connection)
            raise

    def _drop(self, connection: Any) -> None:
        connection.disconnect()
        self._pool.release(connection)

    def run_all(self, commands: Sequence[ScriptCall | Command]) -> list[Reply]:
        """As run() for commands that suit any run; raises the first BufferUnavailable."""
        return checked(self.run(lambda run_id: commands).replies)


def _connection_pool(alias: str) -> Any:
    try:
        return get_redis_connection(alias).connection_pool
    except (InvalidCacheBackendError, NotImplementedError, ValueError) as exc:
        raise conf.SettingError(
            "CACHE_ALIAS",
            f"Invalid value for HITCOUNT['CACHE_ALIAS']: {alias!r} is not a cache of django-redis "
            f"that can be used ({exc}).",
            "Add it to CACHES with the BACKEND 'django_redis.cache.RedisCache' and a LOCATION "
            "such as 'redis://127.0.0.1:6379/1'.",
        ) from exc


def _limit_waits(pool: Any, seconds: float) -> None:
    """See that no wait of a page goes on for longer than it was told, or than ``seconds``."""
    bound(pool)
    options = pool.connection_kwargs
    for name in ("socket_timeout", "socket_connect_timeout"):
        if options.get(name) is None:
            options[name] = seconds
        if f"orig_{name}" in options:
            options[f"orig_{name}"] = options[name]  # What a maintenance of Redis falls back to.
    if hasattr(pool, "timeout"):  # Of a pool whose connections are all in use.
        pool.timeout = min(pool.timeout or seconds, seconds)
    for sentinel in getattr(getattr(pool, "sentinel_manager", None), "sentinels", ()):
        sentinel.connection_pool.connection_kwargs["retry"] = Retry(NoBackoff(), 0)
        _limit_waits(sentinel.connection_pool, seconds)


def checked(replies: list[Reply]) -> list[Reply]:
    """The same replies; raises the first BufferUnavailable among them."""
    for reply in replies:
        if isinstance(reply, BufferUnavailable):
            raise reply
    return replies


def _converse(line: Line, commands: Sequence[ScriptCall | Command], replies: list[Reply]) -> bool:
    """
    Send ``commands`` and append the replies, as far as they come.

    False, and no replies, if the server turns out to be another run than the commands are for.
    """
    connection, run_id = line.connection, line.run_id
    words = [
        command.by_sha(run_id) if isinstance(command, ScriptCall) else command
        for command in commands
    ]
    connection.send_packed_command([b"".join(map(pack_command, words))])
    for _ in commands:
        replies.append(_read(connection))
    unknown = [at for at, reply in enumerate(replies) if _is_unknown_script(reply)]
    if unknown and (found := read_run_id(connection)) != run_id:
        line.run_id = found
        replies.clear()  # No script of this run is known there, and other commands only read.
        return False
    for at in unknown:
        replies[at] = _lost("connection lost")  # Unless it is answered:
        connection.send_command(*commands[at].by_source(run_id))  # type: ignore[union-attr]
        replies[at] = _read(connection)
    return True


def _is_open(connection: Any) -> bool:
    """Whether there is nothing to read: neither a left over answer nor the end."""
    try:
        return not connection.can_read()
    except (RedisError, OSError):
        return False


def _read(connection: Any) -> Reply:
    try:
        # Whoever called closes the connection, but after a refusal the next answer follows.
        return connection.read_response(disable_decoding=True, disconnect_on_error=False)
    except REFUSED as exc:
        return _refused(exc)


def _is_unknown_script(reply: Reply) -> bool:
    return isinstance(reply, BufferUnavailable) and isinstance(reply.__cause__, NoScriptError)


def _refused(exc: RedisError) -> BufferUnavailable:
    error = BufferUnavailable(f"Redis refused a command: {exc}")
    error.__cause__ = exc
    return error


def _lost(reason: object) -> AnswerLost:
    return AnswerLost(f"Redis did not answer: {reason}")
