"""One round trip to Redis, and what is known of it when it fails."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
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
from django_hitcount.buffers.deadlines import Deadline, bound, seconds_left
from django_hitcount.exceptions import AnswerLost, BufferUnavailable

Reply = Any

Command = tuple[Any, ...]
"""A Redis command word by word."""

REFUSED = (ResponseError, BusyLoadingError, AuthenticationError)
"""What redis-py raises for an answer that says no; all else is no answer."""

FRAGMENTS = {"record": ("seen_before",), "see": ("seen_before",)}
"""Files in ``lua/`` with the local functions that a script calls, by script."""


class Script(NamedTuple):
    """A Lua script and the name that Redis knows it by once loaded."""

    source: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script in ``lua/<name>.lua``, behind its fragments."""
    directory = files(__package__).joinpath("lua")
    parts = [*FRAGMENTS.get(name, ()), name]
    source = "\n".join(directory.joinpath(f"{p}.lua").read_text(encoding="utf-8") for p in parts)
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


class Call(NamedTuple):
    """The call of a script."""

    name: str
    keys: Sequence[str]
    args: Sequence[str | int | bytes] = ()

    def by_sha(self) -> Command:
        """The command for a Redis that has the script loaded."""
        return ("EVALSHA", script(self.name).sha, len(self.keys), *self.keys, *self.args)

    def by_source(self) -> Command:
        """The command for a Redis that has not; it loads the script, too."""
        return ("EVAL", script(self.name).source, len(self.keys), *self.keys, *self.args)


class _Idle:
    """Connections of one pool that no command is under way on."""

    def __init__(self) -> None:
        self._connections: deque[Any] = deque()
        self._pid = os.getpid()

    def pop(self) -> Any:
        """The one that was used last, or None."""
        if self._pid != os.getpid():
            self._connections, self._pid = deque(), os.getpid()  # A parent's are not a child's.
        try:
            return self._connections.pop()
        except IndexError:
            return None

    def push(self, connection: Any) -> None:
        self._connections.append(connection)


_IDLE: WeakKeyDictionary[Any, _Idle] = WeakKeyDictionary()
"""By pool, which outlives the buffer when a setting changes."""


class Exchange:
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

    def run(self, commands: Sequence[Call | Command]) -> list[Reply]:
        """
        Send commands in one round trip and return a reply for each.

        A command that was refused has a BufferUnavailable in place of its reply, one whose
        answer was lost an AnswerLost. Raises BufferUnavailable if nothing was sent.

        Waits for timeout_seconds at most, and no longer than a deadline that is set already.
        """
        with Deadline(self.timeout_seconds):
            return self._run_on(self._take(), commands)

    def _run_on(self, connection: Any, commands: Sequence[Call | Command]) -> list[Reply]:
        replies: list[Reply] = []
        is_in_step = False
        try:
            _converse(connection, commands, replies)
            is_in_step = True
        except (RedisError, OSError) as exc:
            replies += [_lost(exc)] * (len(commands) - len(replies))
        finally:
            if is_in_step:
                self._idle.push(connection)
            else:
                self._drop(connection)  # An answer that nobody read must not meet a question.
        return replies

    def _take(self) -> Any:
        """
        A connection that is open; raises BufferUnavailable if there is none to be had.

        Those that were used are kept here, one for each command under way at a time: the
        pool takes as long to hand one out as Redis takes to answer.
        """
        try:
            while connection := self._idle.pop():
                if _is_open(connection):
                    return connection
                self._drop(connection)
            connection = self._pool.get_connection()
        except (RedisError, OSError) as exc:
            raise BufferUnavailable(f"Redis cannot be reached: {exc}") from exc
        if seconds_left() == 0:
            self._drop(connection)
            raise BufferUnavailable("Redis cannot be reached: opening a connection took too long.")
        return connection

    def _drop(self, connection: Any) -> None:
        connection.disconnect()
        self._pool.release(connection)

    def run_all(self, commands: Sequence[Call | Command]) -> list[Reply]:
        """As run(), but raises the first BufferUnavailable among the replies."""
        return checked(self.run(commands))


def _connection_pool(alias: str) -> Any:
    try:
        return get_redis_connection(alias).connection_pool
    except (InvalidCacheBackendError, NotImplementedError, ValueError) as exc:
        raise conf.misconfigured(
            "CACHE_ALIAS",
            f"HITCOUNT['CACHE_ALIAS'] is {alias!r}, no usable cache of django-redis: {exc}",
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


def _converse(connection: Any, commands: Sequence[Call | Command], replies: list[Reply]) -> None:
    """Send ``commands`` and append the replies, as far as they come."""
    words = [command.by_sha() if isinstance(command, Call) else command for command in commands]
    connection.send_packed_command([b"".join(map(pack_command, words))])
    for _ in commands:
        replies.append(_read(connection))
    for at, command in enumerate(commands):
        if isinstance(command, Call) and _is_unknown_script(replies[at]):
            replies[at] = _lost("connection lost")  # Unless it is answered:
            connection.send_command(*command.by_source())
            replies[at] = _read(connection)


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
