"""Start private servers to measure, which are as durable as they are by default."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.servers import MariaDB, PostgreSQL, Server, ServerMissing, Valkey


class DurableMariaDB(MariaDB):
    """The server of the tests, except that its COMMIT waits for the disk."""

    def command(self) -> Sequence[str]:
        return [*super().command(), "--innodb-flush-log-at-trx-commit=1"]

    def start(self) -> None:
        super().start()
        import MySQLdb

        connection = MySQLdb.connect(host="127.0.0.1", port=self.port, user="root")
        database = "CREATE DATABASE IF NOT EXISTS benchmarks CHARACTER SET utf8mb4"
        connection.cursor().execute(database)
        connection.close()


class DurablePostgreSQL(PostgreSQL):
    """The server of the tests, except that its COMMIT waits for the disk."""

    def command(self) -> Sequence[str]:
        return [*super().command(), "-c", "fsync=on"]


DATABASES: dict[str, type[Server]] = {"mariadb": DurableMariaDB, "postgresql": DurablePostgreSQL}


RUNNING: dict[str, Server] = {}
"""The servers by name, so that outages can stop them and start them again."""


@contextmanager
def started(directory: Path) -> Iterator[list[str]]:
    """
    Start Redis and all installed databases, and set the environment that settings read.

    Yields the names of the databases that are not installed.
    """
    left_out = []
    os.environ["HITCOUNT_BENCHMARKS_DIRECTORY"] = str(directory)
    directory.chmod(0o755)
    with ExitStack() as stack:
        _start("redis", Valkey, directory, stack)
        for name, server in DATABASES.items():
            try:
                _start(name, server, directory, stack)
            except ServerMissing:
                left_out.append(name)
        yield left_out


def _start(name: str, cls: type[Server], directory: Path, stack: ExitStack) -> None:
    place = directory / name
    place.mkdir()
    server = cls(place)
    server.start()
    stack.callback(server.stop)
    RUNNING[name] = server
    os.environ[f"HITCOUNT_BENCHMARKS_{name.upper()}_PORT"] = str(server.port)
