"""
Connections to Redis that wait no longer than the deadline, in however many pieces answers come.

redis-py begins its timeout anew with each piece that it reads, each address that it tries and
each step of opening a connection.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from redis.connection import DefaultParser

from django_hitcount.outages.deadlines import seconds_left

if TYPE_CHECKING:
    from redis.connection import AbstractConnection
else:
    AbstractConnection = object

SHORTEST_SECONDS = 0.001
"""Timeout of a step of connecting that begins when the time is up: 0 would mean not to wait."""

CLOSE_ENOUGH = 0.9
"""Share of its timeout that a socket has to have left to keep it: to set it takes system calls."""

DELEGATED = (
    *("close", "detach", "fileno", "getpeername", "getsockname", "getsockopt", "gettimeout"),
    *("send", "sendall", "setblocking", "setsockopt", "shutdown"),
    *("cipher", "getpeercert", "pending", "selected_alpn_protocol", "unwrap", "version"),  # TLS.
)
"""What redis-py or a project may ask of a socket, beside reading."""


def bound(pool: Any) -> None:
    """Bound the connections of a pool of redis-py by the deadlines in which they are used."""
    if issubclass(pool.connection_class, BoundedConnection):
        return
    name = f"Bounded{pool.connection_class.__name__}"
    pool.connection_class = type(name, (BoundedConnection, pool.connection_class), {})
    # Connections that somebody has opened already know no deadline.
    with suppress(TypeError):  # The BlockingConnectionPool of redis-py 6 leaves them to reset().
        pool.disconnect(inuse_connections=False)
    pool.reset()


class BoundedConnection(AbstractConnection):
    """
    Goes before a connection class of redis-py.

    Of what redis-py keeps to itself it uses one name: ``_connect()``, which returns the socket.
    It parses by hiredis, whatever the alias says: the parsers in Python read the answer LOADING
    again and again, instead of the one after it.
    """

    _is_connecting = False

    def __init__(self, **kwargs: Any) -> None:
        self._timeouts: dict[str, float | None] = {}
        super().__init__(**{**kwargs, "parser_class": DefaultParser})
        for name in ("socket_timeout", "socket_connect_timeout"):
            self._timeouts[name] = kwargs.get(name)

    @property
    def socket_timeout(self) -> float | None:
        """The timeout of one wait; redis-py reads it to open a socket, and for nothing else."""
        return self._timeout_of("socket_timeout")

    @socket_timeout.setter
    def socket_timeout(self, seconds: float | None) -> None:
        self._timeouts["socket_timeout"] = seconds

    @property
    def socket_connect_timeout(self) -> float | None:
        """The timeout of one try to connect."""
        return self._timeout_of("socket_connect_timeout")

    @socket_connect_timeout.setter
    def socket_connect_timeout(self, seconds: float | None) -> None:
        self._timeouts["socket_connect_timeout"] = seconds

    def _timeout_of(self, name: str) -> float | None:
        told = self._timeouts.get(name)
        if not self._is_connecting:
            return told
        seconds = _shorter(told, seconds_left())
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
    A socket of redis-py whose readings end by the deadline.

    What sends ends by the timeout of the connection: it waits only for a server that has not
    read megabytes yet.
    """

    def __init__(self, sock: socket.socket, seconds: float | None) -> None:
        self._sock = sock
        # Bound once: to delegate each time would cost a hit as much as all else here.
        vars(self).update({name: getattr(sock, name) for name in DELEGATED if hasattr(sock, name)})
        self.settimeout(seconds)

    def settimeout(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._enough = CLOSE_ENOUGH * seconds if seconds is not None else math.inf
        self._sock.settimeout(seconds)

    def recv(self, *args: Any) -> bytes:
        left = seconds_left()
        if left is None or left > self._enough:
            return self._sock.recv(*args)
        with self._limited(left):
            return self._sock.recv(*args)

    def recv_into(self, *args: Any) -> int:
        left = seconds_left()
        if left is None or left > self._enough:
            return self._sock.recv_into(*args)
        with self._limited(left):
            return self._sock.recv_into(*args)

    @contextmanager
    def _limited(self, left: float) -> Iterator[None]:
        if left == 0:
            raise TimeoutError("the deadline is over")
        self._sock.settimeout(_shorter(left, self._seconds))
        try:
            yield
        finally:
            if self._sock.fileno() >= 0:  # Or somebody has closed it meanwhile.
                self._sock.settimeout(self._seconds)


def _shorter(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
