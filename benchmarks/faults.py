"""Let something go wrong with a server while a block runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from django.db import connection
from django.db.backends.utils import CursorWrapper

from django_hitcount.models import DailyHitSlot, HitSlot
from tests.proxies import Proxy
from tests.servers import HOST, Server, Valkey

TABLES = (HitSlot._meta.db_table, DailyHitSlot._meta.db_table)
"""The tables that each hit is written to."""


@contextmanager
def stopped(server: Server, how: int = signal.SIGTERM) -> Iterator[None]:
    """Stop or kill a server, and start it again afterwards."""
    server.stop(how)
    try:
        yield
    finally:
        server.start()


def killed(server: Server) -> AbstractContextManager[None]:
    return stopped(server, signal.SIGKILL)


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Suspend all processes of a server: it keeps its connections but does not answer."""
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
def configured(valkey: Valkey, command: Sequence[str], back: Sequence[str]) -> Iterator[None]:
    """Send a command to Redis, and afterwards one that undoes it."""
    valkey.ask(*command)
    try:
        yield
    finally:
        valkey.ask(*back)


def full(valkey: Valkey) -> AbstractContextManager[None]:
    memory = ["CONFIG", "SET", "maxmemory"]
    return configured(valkey, [*memory, "1"], [*memory, "0"])


def read_only(valkey: Valkey) -> AbstractContextManager[None]:
    return configured(valkey, ["REPLICAOF", HOST, "1"], ["REPLICAOF", "NO", "ONE"])


@contextmanager
def slow(proxy: Proxy, seconds: float, *, drips: bool = False) -> Iterator[None]:
    """Delay each answer of a server, or with ``drips`` each byte; break open connections first."""
    proxy.delay_seconds, proxy.drips = seconds, drips
    proxy.disconnect()
    try:
        yield
    finally:
        proxy.delay_seconds, proxy.drips = 0.0, False


@contextmanager
def locked_rows(object_id: int, slots: Sequence[int]) -> Iterator[None]:
    """Lock rows of one object in another session."""
    with _another_session() as cursor:
        cursor.execute("BEGIN")
        for model in (HitSlot, DailyHitSlot):
            rows = model.objects.filter(object_id=str(object_id), slot__in=slots)
            # By primary key, because InnoDB locks all rows that a statement reads.
            keys = ", ".join(str(key) for key in rows.values_list("pk", flat=True))
            cursor.execute(f"SELECT 1 FROM {model._meta.db_table} WHERE id IN ({keys}) FOR UPDATE")
            cursor.fetchall()
        yield
        cursor.execute("ROLLBACK")


@contextmanager
def locked_tables(*names: str) -> Iterator[None]:
    """Lock tables in another session, so that nobody else can write or read them."""
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
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            yield cursor
    finally:
        other.close()
