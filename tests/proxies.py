"""A server that answers slowly: a TCP proxy in front of one that does not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from tests.servers import HOST


class Proxy:
    """Passes bytes on between whoever connects to its port and the port of a server."""

    def __init__(self, server_port: int) -> None:
        self.delay_seconds = 0.0
        """How long each piece of an answer is held back."""
        self.drips = False
        """Are answers passed on byte by byte, and each one held back?"""
        self.rewrite: Callable[[bytes], bytes] = bytes
        """Makes another answer of a piece of one."""
        self.questions = 0
        """Pieces that clients have sent."""
        self._server_port = server_port
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets = [self._listener]

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """End all connections, and take no more."""
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((HOST, self._server_port))
                self._sockets += [client, server]
                for pump in (self._ask, self._answer):
                    threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client, server:
            while piece := client.recv(65536):
                self.questions += 1
                server.sendall(piece)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client, server:
            while piece := server.recv(65536):
                answer = self.rewrite(piece)
                for part in [bytes([byte]) for byte in answer] if self.drips else [answer]:
                    time.sleep(self.delay_seconds)
                    client.sendall(part)
