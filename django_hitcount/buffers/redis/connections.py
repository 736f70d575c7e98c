"""
Connections to Redis that wait no longer than the deadline, in however many pieces answers come.

redis-py begins its timeout anew with each piece that it reads, each address that it tries and
each step of opening a connection.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from redis.connection import DefaultParser

from django_hitcount.outages.deadlines import seconds_left

if TYPE_CHECKING:
    from redis.connection import AbstractConnection
else:
    AbstractConnection = object

T = TypeVar("T")

SHORTEST_SECONDS = 0.001
"""Timeout of a step of connecting that begins at the deadline: 0 would mean not to wait."""

CLOSE_ENOUGH = 0.9
"""A socket keeps its timeout while more than this share of it is left: setting one takes system
calls."""

DELEGATED = (
    *("close", "detach", "fileno", "getpeername", "getsockname", "getsockopt", "gettimeout"),
    *("send", "sendall", "setblocking", "setsockopt", "shutdown"),
    *("cipher", "getpeercert", "pending", "selected_alpn_protocol", "unwrap", "version"),  # TLS.
)
"""What redis-py or a project may call on a socket, beside reading."""


def bound_waits(pool: Any) -> None:
    """Bound the connections of a pool of redis-py by the deadlines in which they are used."""
    if issubclass(pool.connection_class, BoundedConnection):
        return
    name = f"Bounded{pool.connection_class.__name__}"
    pool.connection_class = type(name, (BoundedConnection, pool.connection_class), {})
    # Connections that are open already do not know deadlines.
    with suppress(TypeError):  # The BlockingConnectionPool of redis-py 6 leaves them to reset().
        pool.disconnect(inuse_connections=False)
    pool.reset()


class _Timeout:
    """A timeout of a connection that is shorter if the deadline comes first."""

    def __set_name__(self, owner: type[BoundedConnection], name: str) -> None:
        self._name = name

    def __get__(self, connection: BoundedConnection, owner: object = None) -> float | None:
        return connection.timeout_of(self._name)

    def __set__(self, connection: BoundedConnection, seconds: float | None) -> None:
        connection.set_timeout(self._name, seconds)


class BoundedConnection(AbstractConnection):
    """
    Comes before a connection class of redis-py among the bases of a class.

    It uses one private name of redis-py: ``_connect()``, which returns the socket. It parses with
    hiredis, whatever the alias says: the parsers in Python read the answer LOADING again and
    again, instead of the one after it.
    """

    _is_connecting = False

    socket_timeout = _Timeout()
    """The timeout of one wait; redis-py reads it to open a socket, and for nothing else."""

    socket_connect_timeout = _Timeout()
    """The timeout of one attempt to connect."""

    def __init__(self, **kwargs: Any) -> None:
        self._timeouts: dict[str, float | None] = {}
        super().__init__(**{**kwargs, "parser_class": DefaultParser})
        for name in ("socket_timeout", "socket_connect_timeout"):
            self.set_timeout(name, kwargs.get(name))

    def set_timeout(self, name: str, seconds: float | None) -> None:
        self._timeouts[name] = seconds

    def timeout_of(self, name: str) -> float | None:
        """The timeout that was set, or what is left until the deadline while it connects."""
        configured = self._timeouts.get(name)
        if not self._is_connecting:
            return configured
        seconds = _shorter(configured, seconds_left())
        return seconds and max(seconds, SHORTEST_SECONDS)

    def _connect(self) -> BoundedSocket:
        self._is_connecting = True
        try:
            # Untyped, and made abstract for the classes that this one goes before.
            sock = super()._connect()  # type: ignore[no-untyped-call,safe-super]
        finally:
            self._is_connecting = False
        return BoundedSocket(sock, self.socket_timeout)


class BoundedSocket:
    """
    A socket of redis-py that does not read beyond the deadline.

    Sending ends by the timeout of the connection: it waits only for a server that has not read
    megabytes yet.
    """

    def __init__(self, sock: socket.socket, seconds: float | None) -> None:
        self._sock = sock
        # Bound once: delegating each time would cost a hit as much as the rest of this module.
        vars(self).update({name: getattr(sock, name) for name in DELEGATED if hasattr(sock, name)})
        self.settimeout(seconds)

    def settimeout(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._enough = CLOSE_ENOUGH * seconds if seconds is not None else math.inf
        self._sock.settimeout(seconds)

    def recv(self, *args: Any) -> bytes:
        return self._read(self._sock.recv, *args)

    def recv_into(self, *args: Any) -> int:
        return self._read(self._sock.recv_into, *args)

    def _read(self, read: Callable[..., T], *args: Any) -> T:
        left = seconds_left()
        if left is None or left > self._enough:
            return read(*args)
        with self._limited(left):
            return read(*args)

    @contextmanager
    def _limited(self, left: float) -> Iterator[None]:
        if left == 0:
            raise TimeoutError("the deadline is over")
        self._sock.settimeout(_shorter(left, self._seconds))
        try:
            yield
        finally:
            if self._sock.fileno() >= 0:  # It may have been closed meanwhile.
                self._sock.settimeout(self._seconds)


def _shorter(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
