"""The ends of an actor's connections: a socket to Redis, and a database that Django talks to."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from django.db.backends.sqlite3.base import DatabaseWrapper

ask: Callable[..., Any]


def set_ask(function: Callable[..., Any]) -> None:
    """Set the function that asks the explorer."""
    global ask
    ask = function


@cache
def _pairs() -> tuple[tuple[socket.socket, socket.socket], socket.socket]:
    """Return sockets that look to poll() like an open connection, and like a closed one."""
    still_open, (closed, peer) = socket.socketpair(), socket.socketpair()
    peer.close()
    return still_open, closed


class StagedSocket:
    """
    In place of a socket to Redis: what was sent is one message as soon as an answer is wanted.

    ``run`` is the run of the server that it is connected to.
    """

    def __init__(self) -> None:
        self._run = ask("connect")
        if self._run is None:
            raise ConnectionRefusedError("Redis is away")
        self._outgoing = b""
        self._incoming = b""
        self._is_closed = False
        self._timeout: float | None = None

    def sendall(self, data: bytes) -> None:
        self._outgoing += bytes(data)

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        if not self._incoming and self._outgoing:
            self._exchange()
        elif not self._incoming and not self._is_closed:
            self.fileno()
            if not self._is_closed:
                raise BlockingIOError
        data, left = self._incoming[:size], self._incoming[size:]
        if not flags & socket.MSG_PEEK:
            self._incoming = left
        return data

    def recv_into(self, buffer: bytearray, nbytes: int = 0, flags: int = 0) -> int:
        data = self.recv(nbytes or len(buffer), flags)
        buffer[: len(data)] = data
        return len(data)

    def _exchange(self) -> None:
        message, self._outgoing = self._outgoing, b""
        reply = ask("send", self._run, message)
        if reply is None:
            self._is_closed = True
        else:
            self._incoming = reply

    def fileno(self) -> int:
        """Whoever wants it looks whether the connection is still open."""
        if not self._is_closed and not self._incoming:
            self._is_closed = not ask("poll", self._run)
        still_open, closed = _pairs()
        return closed.fileno() if self._is_closed else still_open[0].fileno()

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, *args: object) -> None:
        pass

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 6379)

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        pass


class StagedDatabase(DatabaseWrapper):
    """Django's connection of an actor. All statements go to the explorer."""

    def __init__(self) -> None:
        super().__init__(settings_of("default"), "default")

    def get_new_connection(self, conn_params: object) -> StagedConnection:
        return StagedConnection()

    def ensure_connection(self) -> None:
        if self.connection is None:
            self.connect()

    def init_connection_state(self) -> None:
        pass

    def create_cursor(self, name: object = None) -> StagedCursor:
        return StagedCursor()


def settings_of(alias: str) -> dict[str, Any]:
    """Return settings of a database in memory, as Django completes them."""
    return {
        **dict.fromkeys(["USER", "PASSWORD", "HOST", "PORT"], ""),
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {},
        "TIME_ZONE": None,
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": False,
        "AUTOCOMMIT": True,
        "ATOMIC_REQUESTS": False,
        "TEST": {"NAME": None},
    }


class StagedConnection:
    """In place of a connection of sqlite3."""

    isolation_level: str | None = None

    def cursor(self, factory: object = None) -> StagedCursor:
        return StagedCursor()

    def commit(self) -> None:
        StagedCursor().execute("COMMIT")

    def rollback(self) -> None:
        StagedCursor().execute("ROLLBACK")

    def close(self) -> None:
        pass

    def getlimit(self, category: int) -> int:
        return 32_766

    def set_trace_callback(self, callback: object) -> None:
        pass


class StagedCursor:
    """In place of a cursor of sqlite3."""

    description: Sequence[Any] | None = None
    rowcount = -1
    lastrowid: int | None = None

    def __init__(self) -> None:
        self._rows: list[Any] = []

    def execute(self, sql: str, params: Sequence[Any] | None = None) -> StagedCursor:
        failure, self.description, rows, self.rowcount, self.lastrowid = ask(
            "sql", sql, None if params is None else tuple(params)
        )
        if failure:
            raise make_error(*failure)
        self._rows = [*rows]
        return self

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int = 1) -> list[Any]:
        found, self._rows = self._rows[:size], self._rows[size:]
        return found

    def fetchall(self) -> list[Any]:
        return self.fetchmany(len(self._rows))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())

    def close(self) -> None:
        pass


def make_error(name: str, message: str, code: int | None) -> sqlite3.Error:
    """Make the error that sqlite3 raised."""
    error: sqlite3.Error = getattr(sqlite3, name)(message)
    if code is not None:
        error.sqlite_errorcode = code
    return error
