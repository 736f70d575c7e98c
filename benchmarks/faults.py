"""What may go wrong with a server, for as long as a block runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from django.db import connections
from django.db.backends.utils import CursorWrapper

from benchmarks import databases
from django_hitcount.models import DailyHitSlot, HitSlot
from tests.proxies import Proxy
from tests.servers import HOST, Server, Valkey

TABLES = (HitSlot._meta.db_table, DailyHitSlot._meta.db_table)
"""Those that each hit is written into."""


@contextmanager
def stopped(server: Server, how: int = signal.SIGTERM) -> Iterator[None]:
    """A server that is stopped or killed, and started again."""
    server.stop(how)
    try:
        yield
    finally:
        server.start()


def killed(server: Server) -> AbstractContextManager[None]:
    return stopped(server, signal.SIGKILL)


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """A server whose processes are all suspended: it keeps its connections and says nothing."""
    _signal(server, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(server, signal.SIGCONT)


def _signal(server: Server, number: int) -> None:
    assert server.process
    server.process.send_signal(number)
    for children in Path(f"/proc/{server.process.pid}/task").glob("*/children"):
        for pid in children.read_text().split():
            os.kill(int(pid), number)


@contextmanager
def told(valkey: Valkey, command: Sequence[str], back: Sequence[str]) -> Iterator[None]:
    """A Redis that was sent a command, and in the end another that undoes it."""
    valkey.ask(*command)
    try:
        yield
    finally:
        valkey.ask(*back)


def full(valkey: Valkey) -> AbstractContextManager[None]:
    memory = ["CONFIG", "SET", "maxmemory"]
    return told(valkey, [*memory, "1"], [*memory, "0"])


def read_only(valkey: Valkey) -> AbstractContextManager[None]:
    return told(valkey, ["REPLICAOF", HOST, "1"], ["REPLICAOF", "NO", "ONE"])


@contextmanager
def slow(proxy: Proxy, seconds: float, *, drips: bool = False) -> Iterator[None]:
    """A server of which every answer takes so long, or every byte; connections are new."""
    proxy.delay_seconds, proxy.drips = seconds, drips
    proxy.disconnect()
    try:
        yield
    finally:
        proxy.delay_seconds, proxy.drips = 0.0, False


@contextmanager
def locked_rows(object_id: int, slots: Sequence[int]) -> Iterator[None]:
    """Rows of one object that another session has locked."""
    with _another_session() as cursor:
        cursor.execute("BEGIN")
        for model in (HitSlot, DailyHitSlot):
            rows = model.objects.filter(object_id=str(object_id), slot__in=slots)
            # By primary key: InnoDB locks whatever a statement reads on its way.
            keys = ", ".join(str(key) for key in rows.values_list("pk", flat=True))
            cursor.execute(f"SELECT 1 FROM {model._meta.db_table} WHERE id IN ({keys}) FOR UPDATE")
            cursor.fetchall()
        yield
        cursor.execute("ROLLBACK")


@contextmanager
def locked_tables(*names: str) -> Iterator[None]:
    """Tables that nobody else can write or read."""
    with _another_session() as cursor:
        if cursor.db.vendor == "mysql":
            cursor.execute("LOCK TABLES " + ", ".join(f"{name} WRITE" for name in names))
        else:
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")
        yield
        cursor.execute("UNLOCK TABLES" if cursor.db.vendor == "mysql" else "ROLLBACK")


@contextmanager
def _another_session() -> Iterator[CursorWrapper]:
    connection = connections[databases.current()].copy()
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
