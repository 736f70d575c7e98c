"""One round trip to Redis, and what is known of the commands when it fails."""

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
from django_hitcount.buffers.redis.connections import bound_waits
from django_hitcount.buffers.redis.scripts import BuildCommands, Command, ScriptCall
from django_hitcount.exceptions import AnswerLost, BufferUnavailable
from django_hitcount.outages.deadlines import Deadline, has_deadline, seconds_left

Reply = Any

REJECTIONS = (ResponseError, BusyLoadingError, AuthenticationError)
"""What redis-py raises for an answer that rejects a command. Anything else is no answer."""


class RunReplies(NamedTuple):
    """The replies of a server, and the run of it that gave them."""

    run_id: str
    replies: list[Reply]


class OpenConnection:
    """A connection, and the run of the server that it leads to."""

    __slots__ = ("connection", "run_id")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.run_id = read_run_id(connection)


RUN_ID_LETTERS = 12
"""Of 40: two runs of a server share them once in 10^14 times."""


UNKNOWN_RUN = "unknown"
"""For a server that does not say: we assume that it never goes back in time."""


def read_run_id(connection: Any) -> str:
    """Ask a server which run of it this is; costs a round trip."""
    connection.send_command("INFO", "server")
    reply = _read(connection)
    found = re.search(rb"run_id:(\w+)", reply) if isinstance(reply, bytes) else None
    return found[1][:RUN_ID_LETTERS].decode() if found else UNKNOWN_RUN


class IdleConnections:
    """Connections of one pool that are not in use."""

    def __init__(self) -> None:
        self._connections: deque[OpenConnection] = deque()
        self._pid = os.getpid()

    def pop(self) -> OpenConnection | None:
        """The one that was used last, or None."""
        if self._pid != os.getpid():
            self._connections, self._pid = (
                deque(),
                os.getpid(),
            )  # A forked child must not use those of its parent.
        try:
            return self._connections.pop()
        except IndexError:
            return None

    def push(self, opened: OpenConnection) -> None:
        self._connections.append(opened)


_IDLE_CONNECTIONS: WeakKeyDictionary[Any, IdleConnections] = WeakKeyDictionary()
"""By pool, which outlives the buffer when a setting changes."""


class RedisTransport:
    """
    Sends commands over the connection pool of a cache alias.

    Redis clients cannot say whether a command that failed was run. This class opens a
    connection first. What fails before anything was sent raises BufferUnavailable, and what
    fails later is reported as AnswerLost.
    """

    def __init__(self, alias: str, *, timeout_seconds: float) -> None:
        self._pool = _connection_pool(alias)
        _limit_waits(self._pool, timeout_seconds)
        self.timeout_seconds: float = self._pool.connection_kwargs["socket_timeout"]
        """Longest wait for the answers of one call, connecting included."""
        self._idle = _IDLE_CONNECTIONS.setdefault(self._pool, IdleConnections())

    def send(self, build: BuildCommands) -> RunReplies:
        """
        Send the commands that ``build`` makes in one round trip, and return a reply for each.

        A command that was rejected has a BufferUnavailable in place of its reply, and one whose
        answer was lost an AnswerLost. Raises BufferUnavailable if nothing was sent.

        Waits until the deadline that is set, or for timeout_seconds at most if there is none.
        """
        if has_deadline():
            return self._send_on(self._take(), build)
        with Deadline(self.timeout_seconds):
            return self._send_on(self._take(), build)

    def _send_on(self, opened: OpenConnection, build: BuildCommands) -> RunReplies:
        commands: Sequence[ScriptCall | Command] = ()
        replies: list[Reply] = []
        is_in_step = False
        try:
            commands = build(opened.run_id)
            while not _send_and_read(opened, commands, replies):
                commands = build(opened.run_id)
            is_in_step = True
        except (RedisError, OSError) as exc:
            replies += [_make_answer_lost(exc)] * (len(commands) - len(replies))
        finally:
            if is_in_step:
                self._idle.push(opened)
            else:
                self._drop(
                    opened.connection
                )  # The next command must not read an answer to this one.
        return RunReplies(opened.run_id, replies)

    def _take(self) -> OpenConnection:
        """
        An open connection; raises BufferUnavailable if none can be opened.

        Used connections are kept here, since the pool takes as long to hand one out as Redis
        takes to answer.
        """
        try:
            while opened := self._idle.pop():
                if _is_usable(opened.connection):
                    return opened
                self._drop(opened.connection)
            opened = self._open()
        except (RedisError, OSError) as exc:
            raise BufferUnavailable(f"Redis cannot be reached: {exc}") from exc
        if seconds_left() == 0:
            self._drop(opened.connection)
            raise BufferUnavailable("Redis cannot be reached: opening a connection took too long.")
        return opened

    def _open(self) -> OpenConnection:
        connection = self._pool.get_connection()
        try:
            return OpenConnection(connection)
        except BaseException:
            self._drop(connection)
            raise

    def _drop(self, connection: Any) -> None:
        connection.disconnect()
        self._pool.release(connection)


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
    """Limit each wait of a page to the timeouts of the pool, or to ``seconds`` if it has none."""
    bound_waits(pool)
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


def raise_failures(replies: list[Reply]) -> list[Reply]:
    """The same replies; raises the first BufferUnavailable among them."""
    for reply in replies:
        if isinstance(reply, BufferUnavailable):
            raise reply
    return replies


def _send_and_read(
    opened: OpenConnection, commands: Sequence[ScriptCall | Command], replies: list[Reply]
) -> bool:
    """
    Send ``commands`` and append the replies, as many as arrive.

    Returns False, and appends nothing, if the server is not the run that the commands are for.
    """
    connection, run_id = opened.connection, opened.run_id
    words = [
        command.by_sha(run_id) if isinstance(command, ScriptCall) else command
        for command in commands
    ]
    connection.send_packed_command([b"".join(map(pack_command, words))])
    for _ in commands:
        replies.append(_read(connection))
    unknown = [at for at, reply in enumerate(replies) if _is_unknown_script(reply)]
    if unknown and (found := read_run_id(connection)) != run_id:
        opened.run_id = found
        replies.clear()  # No script of this run is known there, and other commands only read.
        return False
    for at in unknown:
        replies[at] = _make_answer_lost("connection lost")  # Unless it is answered:
        connection.send_command(*commands[at].by_source(run_id))  # type: ignore[union-attr]
        replies[at] = _read(connection)
    return True


def _is_usable(connection: Any) -> bool:
    """Whether there is nothing to read: no answer that is left over, and not the end."""
    try:
        return not connection.can_read()
    except (RedisError, OSError):
        return False


def _read(connection: Any) -> Reply:
    try:
        # The caller closes the connection, but after a rejection the next answer follows.
        return connection.read_response(disable_decoding=True, disconnect_on_error=False)
    except REJECTIONS as exc:
        return _make_rejection(exc)


def _is_unknown_script(reply: Reply) -> bool:
    return isinstance(reply, BufferUnavailable) and isinstance(reply.__cause__, NoScriptError)


def _make_rejection(exc: RedisError) -> BufferUnavailable:
    error = BufferUnavailable(f"Redis rejected a command: {exc}")
    error.__cause__ = exc
    return error


def _make_answer_lost(reason: object) -> AnswerLost:
    return AnswerLost(f"Redis did not answer: {reason}")
