"""
Connections to Redis that never wait longer than the deadline.

The timeouts of redis-py do not ensure that. They start again with each piece of an answer, with
each address that it tries, and with each step of opening a connection.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from redis.connection import DefaultParser

from django_hitcount.outages.waits import deadline, seconds_left

if TYPE_CHECKING:
    from redis.connection import AbstractConnection
else:
    AbstractConnection = object

SHORTEST_SECONDS = 0.001
"""The timeout of a step of connecting that begins at the deadline. 0 would mean not to block."""

CLOSE_ENOUGH = 0.9
"""While more than this share of the timeout is left, a socket keeps the one that it has: setting
another takes system calls."""

DELEGATED = (
    *("close", "detach", "fileno", "getpeername", "getsockname", "getsockopt", "gettimeout"),
    *("send", "sendall", "setblocking", "setsockopt", "shutdown"),
    *("cipher", "getpeercert", "pending", "selected_alpn_protocol", "unwrap", "version"),  # TLS.
)
"""Methods that redis-py or a project may call on a socket, besides those that read."""


def bound_waits(pool: Any) -> None:
    """Make the connections of a pool of redis-py obey the deadlines in which they are used."""
    if issubclass(pool.connection_class, BoundedConnection):
        return
    name = f"Bounded{pool.connection_class.__name__}"
    pool.connection_class = type(name, (BoundedConnection, pool.connection_class), {})
    # Connections that are open already do not know deadlines.
    with suppress(TypeError):  # The BlockingConnectionPool of redis-py 6 leaves them to reset().
        pool.disconnect(inuse_connections=False)
    pool.reset()


class _Timeout:
    """A timeout of a connection. While it connects, it is shorter if the deadline comes earlier."""

    def __set_name__(self, owner: type[BoundedConnection], name: str) -> None:
        self._name = name

    def __get__(self, connection: BoundedConnection, owner: object = None) -> float | None:
        return connection.timeout_of(self._name)

    def __set__(self, connection: BoundedConnection, seconds: float | None) -> None:
        connection.set_timeout(self._name, seconds)


class BoundedConnection(AbstractConnection):
    """
    A base class that comes before a connection class of redis-py.

    Uses one private name of redis-py: ``_connect()``, which returns the socket. Always parses with
    hiredis, even if the alias names another parser: those in Python return the answer LOADING
    again and again, instead of the next answer.
    """

    bounded_socket: BoundedSocket | None = None
    """The socket since it was opened last."""

    _is_connecting = False

    socket_timeout = _Timeout()
    """The timeout of one wait. redis-py only reads it to open a socket."""

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
        """Return the timeout that was set. While it connects, at most the time to the deadline."""
        configured = self._timeouts.get(name)
        if not self._is_connecting:
            return configured
        seconds = _shorter(configured, seconds_left())
        return None if seconds is None else max(seconds, SHORTEST_SECONDS)

    def _connect(self) -> BoundedSocket:
        self._is_connecting = True
        try:
            # redis-py has no types for it, and AbstractConnection declares it as abstract.
            sock = super()._connect()  # type: ignore[no-untyped-call,safe-super]
        finally:
            self._is_connecting = False
        self.bounded_socket = BoundedSocket(sock, self.socket_timeout)
        return self.bounded_socket


class BoundedSocket:
    """
    A socket of redis-py that does not read beyond the deadline.

    Sending only has the timeout of the connection: it waits only if megabytes are sent and the
    server does not read them.
    """

    def __init__(self, sock: socket.socket, seconds: float | None) -> None:
        self._sock = sock
        # Bind them once: delegating each call would take as long as all else in this module.
        vars(self).update({name: getattr(sock, name) for name in DELEGATED if hasattr(sock, name)})
        self.settimeout(seconds)

    def settimeout(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._enough = CLOSE_ENOUGH * seconds if seconds is not None else math.inf
        self._sock.settimeout(seconds)

    def recv(self, *args: Any) -> bytes:
        moment = deadline.get()
        if moment is None or moment - monotonic() > self._enough:
            return self._sock.recv(*args)
        with self._limited(seconds_left()):
            return self._sock.recv(*args)

    def recv_into(self, *args: Any) -> int:
        with self._limited(seconds_left()):
            return self._sock.recv_into(*args)

    @contextmanager
    def _limited(self, left: float | None) -> Iterator[None]:
        if left == 0:
            raise TimeoutError("the deadline is over")
        self._sock.settimeout(_shorter(left, self._seconds))
        try:
            yield
        finally:
            if self._sock.fileno() >= 0:  # It may have been closed in the block.
                self._sock.settimeout(self._seconds)


def _shorter(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
