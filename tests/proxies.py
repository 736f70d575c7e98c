"""TCP proxies in front of a server: one that makes it slow, one that hides a restart."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.servers import HOST


class Proxy:
    """Passes bytes on between its clients and the port of a server."""

    def __init__(self, server_port: int) -> None:
        self.delay_seconds = 0.0
        """How long each piece of an answer is delayed."""
        self.drips = False
        """Are answers passed on byte by byte, each with the delay?"""
        self.rewrite: Callable[[bytes], bytes] = bytes
        """Replaces a piece of an answer."""
        self.accepts: Callable[[bytes], bool] = bool
        """Whether to pass on a piece that a client has sent. If not, the connection ends."""
        self.questions = 0
        """How many pieces clients have sent."""
        self._server_port = server_port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, server_port: int) -> None:
        """Lead new connections to another server. The open ones stay."""
        self._server_port = server_port

    def stop(self) -> None:
        """End all connections, and accept no more."""
        _end(self._listener)
        self.disconnect()

    def disconnect(self) -> None:
        """End all connections."""
        sockets, self._sockets = self._sockets, []
        for sock in sockets:
            _end(sock)

    def lose(
        self, after: int = 0, *, is_run: bool = True, meanwhile: Callable[[], object] = bool
    ) -> None:
        """
        Lose the answer to a request, or the request, after some others, and its connection.

        Before the connection ends, ``meanwhile`` happens.
        """
        left = itertools.count(after, -1)

        def lose_answer(answer: bytes) -> bytes:
            self.rewrite = bytes
            meanwhile()
            self.disconnect()
            raise ConnectionResetError

        def accepts(question: bytes) -> bool:
            if next(left) > 0:
                return True
            self.accepts = bool
            if is_run:
                self.rewrite = lose_answer
            return is_run

        self.accepts = accepts

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection((HOST, self._server_port))
                except ConnectionRefusedError:
                    _end(client)
                    continue
                self._sockets += [client, server]
                for pump in (self._ask, self._answer):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with _ended(client, server):
            while piece := client.recv(65536):
                self.questions += 1
                if not self.accepts(piece):
                    self.disconnect()
                    return
                server.sendall(piece)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with _ended(client, server):
            while piece := server.recv(65536):
                answer = self.rewrite(piece)
                for part in [bytes([byte]) for byte in answer] if self.drips else [answer]:
                    time.sleep(self.delay_seconds)
                    client.sendall(part)


class KeepingProxy:
    """
    Keeps the connections of its clients when the server behind it restarts.

    So do proxies that speak the protocol of Redis. A request that is under way when the
    server goes is not answered: its client is disconnected.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = None
        with client, suppress(OSError):
            while request := client.recv(1 << 20):
                if server is None or _has_ended(server):
                    server = self._connect()
                server.sendall(request)
                if not (answer := server.recv(1 << 20)):
                    return
                client.sendall(answer)
                server.settimeout(0.005)  # The rest of a long answer, if any.
                with suppress(TimeoutError):
                    while rest := server.recv(1 << 20):
                        client.sendall(rest)
                server.settimeout(None)

    def _connect(self) -> socket.socket:
        server = socket.create_connection((HOST, self._server_port))
        self._sockets.append(server)
        return server


def _has_ended(server: socket.socket) -> bool:
    server.setblocking(False)
    try:
        return server.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        server.setblocking(True)


@contextmanager
def _ended(*sockets: socket.socket) -> Iterator[None]:
    """End both connections after the block. Another thread may be waiting for one of them."""
    with suppress(OSError):
        yield
    for sock in sockets:
        _end(sock)


def _end(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
