"""
Send commands to Redis in one round trip. If it fails, find out whether they may have been run.

A run is the time of a Redis server from one start to the next. Its ``run_id`` names it.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
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
"""What redis-py raises if the server rejects a command. After other errors, there is no answer."""


class RunReplies(NamedTuple):
    """The replies of a server, and its run."""

    run_id: str
    replies: list[Reply]


RUN_ID_LETTERS = 12
"""How many of the 40 letters are used: two runs share them with a chance of 1 in 10^14."""


FOLLOWERS = ("read_totals", "read_visitors", "discard", "drop_kept")
"""Scripts that follow others in a round trip, and read or drop what these wrote."""

UNKNOWN_RUN = "unknown"
"""The run of a server that does not report it. We assume that it never goes back in time."""


def read_run_id(connection: Any) -> str:
    """Ask a server for its run id. Costs a round trip."""
    connection.send_command("INFO", "server")
    reply = _read(connection)
    found = re.search(rb"run_id:(\w+)", reply) if isinstance(reply, bytes) else None
    return found[1][:RUN_ID_LETTERS].decode() if found else UNKNOWN_RUN


class IdleConnections:
    """Connections of one pool that are not in use."""

    def __init__(self) -> None:
        self._connections: deque[Any] = deque()
        self._pid = os.getpid()

    def pop(self) -> Any | None:
        """Return the connection that was used last, or None if there is none."""
        if self._pid != os.getpid():
            # After a fork, the child must not use the connections of its parent.
            self._connections, self._pid = deque(), os.getpid()
        try:
            return self._connections.pop()
        except IndexError:
            return None

    def push(self, connection: Any) -> None:
        self._connections.append(connection)


_IDLE_CONNECTIONS: WeakKeyDictionary[Any, IdleConnections] = WeakKeyDictionary()
"""By pool. When a setting changes, the buffer is created again, and the pool stays."""


class RedisTransport:
    """
    Sends commands over the connection pool of a cache alias.

    Redis clients do not report whether a command that failed was run. So this class opens a
    connection first. If that fails, nothing was sent, and it raises BufferUnavailable. If something
    fails later, it returns AnswerLost: the command may have been run.
    """

    def __init__(self, alias: str, *, timeout_seconds: float) -> None:
        self._pool = _connection_pool(alias)
        _limit_waits(self._pool, timeout_seconds)
        self.timeout_seconds: float = self._pool.connection_kwargs["socket_timeout"]
        """Longest wait for the answers to one call, including the time to connect."""
        self._idle = _IDLE_CONNECTIONS.setdefault(self._pool, IdleConnections())

    def send(self, build: BuildCommands) -> RunReplies:
        """
        Send the commands that ``build`` makes in one round trip, and return a reply for each.

        In place of a reply, there is a BufferUnavailable if the command was rejected, and an
        AnswerLost if its answer was lost. Raises BufferUnavailable if nothing was sent.

        Waits until the current deadline, or for at most timeout_seconds if no deadline is set.
        """
        if has_deadline():
            return self._send_on(self._take(), build)
        with Deadline(self.timeout_seconds):
            return self._send_on(self._take(), build)

    def _send_on(self, connection: Any, build: BuildCommands) -> RunReplies:
        commands: Sequence[ScriptCall | Command] = ()
        replies: list[Reply] = []
        is_in_step = False
        try:
            commands = build(connection.run_id)
            while not _send_and_read(connection, commands, replies):
                commands = build(connection.run_id)
            is_in_step = True
        except (RedisError, OSError) as exc:
            replies += [_make_answer_lost(exc)] * (len(commands) - len(replies))
        finally:
            run_id = connection.run_id
            if is_in_step:
                self._idle.push(connection)
            else:
                self._drop(connection)  # The next command must not read an answer to these.
        return RunReplies(run_id, replies)

    def _take(self) -> Any:
        """
        Take an open connection. Raises BufferUnavailable if none can be opened.

        Connections that were used are kept here. To get one from the pool would take as long as an
        answer from Redis.
        """
        try:
            while connection := self._idle.pop():
                if _is_usable(connection):
                    return self._ask_run(connection)
                self._drop(connection)
            connection = self._ask_run(self._pool.get_connection())
        except (RedisError, OSError) as exc:
            raise BufferUnavailable(f"Redis cannot be reached: {exc}") from exc
        if seconds_left() == 0:
            self._drop(connection)
            raise BufferUnavailable("Redis cannot be reached: opening a connection took too long.")
        return connection

    def _ask_run(self, connection: Any) -> Any:
        """Find out the run of the server, unless it is known. Costs a round trip then."""
        if connection.run_id:
            return connection
        try:
            connection.run_id = read_run_id(connection)
        except BaseException:
            self._drop(connection)
            raise
        return connection

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


def _send_and_read(
    connection: Any, commands: Sequence[ScriptCall | Command], replies: list[Reply]
) -> bool:
    """
    Send ``commands``, and append those replies that arrive.

    Returns False, and appends nothing, if the server is in another run than the commands are for.
    """
    run_id = connection.run_id
    words = [
        command.by_sha(run_id) if isinstance(command, ScriptCall) else command
        for command in commands
    ]
    connection.send_packed_command([b"".join(map(pack_command, words))])
    for _ in commands:
        replies.append(_read(connection))
    unknown = [at for at, reply in enumerate(replies) if _is_unknown_script(reply)]
    if unknown and (found := read_run_id(connection)) != run_id:
        connection.run_id = found
        replies.clear()  # This run knows no script of the other run, and all else only reads.
        return False
    for at in _find_late(commands, unknown):
        command = commands[at]
        replies[at] = _make_answer_lost("connection lost")  # Replaced by the reply below.
        connection.send_command(
            *(command.by_source(run_id) if isinstance(command, ScriptCall) else command)
        )
        replies[at] = _read(connection)
    return True


def _find_late(commands: Sequence[ScriptCall | Command], unknown: Sequence[int]) -> Iterator[int]:
    """Return the places of unknown scripts, and of those that came before what they follow."""
    if unknown:
        scripts = {*unknown}
        for at in range(unknown[0], len(commands)):
            if at in scripts or commands[at][0] in FOLLOWERS:
                yield at


def _is_usable(connection: Any) -> bool:
    """Return whether there is nothing to read: no late answer, and no end of the connection."""
    try:
        return not connection.can_read()
    except (RedisError, OSError):
        return False


def _read(connection: Any) -> Reply:
    try:
        # Do not disconnect here: after a rejection, the answers to the next commands follow.
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
