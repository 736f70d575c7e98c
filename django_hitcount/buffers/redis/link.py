"""
A link to Redis: a connection of redis-py that is used without its client.

redis-py opens the connection, authenticates and encrypts. Commands and replies then pass over its
socket alone: the client takes longer for them than Redis, and does not say what was sent.
"""

from __future__ import annotations

import os
import re
import select
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hiredis import PushNotification, Reader, pack_command
from redis.exceptions import ResponseError

from django_hitcount.buffers.redis.scripts import (
    Command,
    PackedCall,
    ScriptCall,
    pack_with_source,
)
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.outages.missed_records import CommandId

Reply = Any

BuiltCommand = PackedCall | ScriptCall | Command
"""A command that is ready for one server, in one of its runs."""

RUN_ID_LETTERS = 12
"""How many of the 40 letters are used: two runs share them with a chance of 1 in 10^14."""

UNKNOWN_RUN = "unknown"
"""The run of a server that does not report it. We assume that it never goes back in time."""

READ_BYTES = 65536

FOLLOWERS = ("read_hits", "read_visitors", "discard")
"""Scripts that follow others in a round trip, and read or drop what these wrote."""

NO_SCRIPT = "NOSCRIPT"
"""How the error begins if a server has not loaded a script."""

READ_ONLY = "READONLY "
"""A part of the error if a server is a replica. Before Redis 7, that of a script begins in another
way."""

FOREIGN_VALUE = "WRONGTYPE"
"""A part of the error if somebody else has written a value of another type in place of ours."""

INFO: Command = ("INFO", "server")

_INCOMPLETE = object()


class AnswerLost(BufferUnavailable):
    """Redis did not answer after the command was sent, so it may have run it."""


class ForeignValue(BufferUnavailable):
    """Redis rejected a command because of a foreign value. It takes all others."""


class Link:
    """
    A connection that is opened again when it was closed, and the run of the server at its end.

    A link numbers its record commands. Redis remembers the last number of each link, and runs a
    command only if its number is greater. So a command can be sent again after its answer was lost,
    by whichever link. The link itself is not used again then.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.pid = os.getpid()
        self._connection: Any = None
        self._socket: Any = None
        self._recorder = uuid.uuid4().hex
        self._poller, self._polled = select.poll(), -1
        self._commands = 0
        self._has_rejected = False
        """Whether a reply was an error since the last exchange() began."""

        self.run_id = ""

    def is_usable(self) -> bool:
        """Return whether it is open, and nothing can be read: no late answer, and no end."""
        sock = self._socket
        if sock is None or sock is not self._connection.bounded_socket:
            return False  # Somebody else has opened the connection again.
        number = sock.fileno()
        if number < 0:
            return False  # Somebody else has closed it.
        if number != self._polled:
            self._poller, self._polled = select.poll(), number
            self._poller.register(number, select.POLLIN)
        return not self._poller.poll(0)

    def open(self) -> None:
        """
        Open a connection of the pool. Costs a round trip, that asks the server for its run.

        Raises RedisError, OSError or HiredisError.
        """
        self.close()
        self._connection = self._pool.get_connection()
        self._socket = self._connection.bounded_socket
        self._reader = Reader(replyError=self._make_rejection, notEnoughData=_INCOMPLETE)
        try:
            self.run_id = self._read_run_id()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._connection:
            self._connection.disconnect()
            self._pool.release(self._connection)
            self._connection = self._socket = None

    def number_command(self) -> CommandId:
        """Return the id for a new record command."""
        self._commands += 1
        return CommandId(self._recorder, self._commands, self.run_id)

    def exchange(self, commands: Sequence[BuiltCommand], replies: list[Reply]) -> bool:
        """
        Send ``commands``, and append those replies that arrive.

        In place of the reply to a command that was rejected, appends a BufferUnavailable. Returns
        False, and appends nothing, if the server is in another run than the commands are for.
        Raises OSError or HiredisError if an answer does not arrive.
        """
        self._has_rejected = False
        calls = [
            command if type(command) is PackedCall else _pack(command, self.run_id)
            for command in commands
        ]
        self._ask(b"".join([call.packed for call in calls]), len(calls), replies)
        return not self._has_rejected or self._handle_rejections(calls, replies)

    def _handle_rejections(self, calls: Sequence[PackedCall], replies: list[Reply]) -> bool:
        """Load scripts that the server does not know. Returns what exchange() returns."""
        run_id = self.run_id
        rejected = {
            at: str(reply.__cause__)
            for at, reply in enumerate(replies)
            if isinstance(reply, BufferUnavailable)
        }
        if any(READ_ONLY in text for text in rejected.values()):
            self.close()  # It is a replica now. A new connection leads to the server in its place.
            return True
        unknown = [at for at, text in rejected.items() if text.startswith(NO_SCRIPT)]
        if not unknown:
            return True
        if (found := self._read_run_id()) != run_id:
            self.run_id = found
            replies.clear()  # It knows no script of the other run, so only reads were run.
            return False
        for at in _find_late(calls, unknown):
            replies[at] = make_answer_lost("connection lost")  # Replaced by the reply.
            late: list[Reply] = []
            self._ask(pack_with_source(calls[at], run_id), 1, late)
            (replies[at],) = late
        return True

    def _make_rejection(self, text: str) -> BufferUnavailable:
        self._has_rejected = True
        rejection = ForeignValue if FOREIGN_VALUE in text else BufferUnavailable
        error = rejection(f"Redis rejected a command: {text}")
        error.__cause__ = ResponseError(text)
        return error

    def _read_run_id(self) -> str:
        """Ask the server for its run. Costs a round trip."""
        replies: list[Reply] = []
        self._ask(pack_command(INFO), 1, replies)
        found = re.search(rb"run_id:(\w+)", replies[0]) if isinstance(replies[0], bytes) else None
        return found[1][:RUN_ID_LETTERS].decode() if found else UNKNOWN_RUN

    def _ask(self, packed: bytes, number: int, replies: list[Reply]) -> None:
        """Send packed commands, and append the ``number`` of replies as they arrive."""
        sock, reader = self._socket, self._reader
        sock.sendall(packed)
        while number:
            reply = reader.gets()
            if reply is _INCOMPLETE:
                data = sock.recv(READ_BYTES)
                if not data:
                    raise ConnectionResetError("the server has closed the connection")
                reader.feed(data)
            elif type(reply) is not PushNotification:
                replies.append(reply)
                number -= 1


def _pack(command: ScriptCall | Command, run_id: str) -> PackedCall:
    if isinstance(command, ScriptCall):
        return PackedCall(command.name, command.pack(run_id))
    return PackedCall(command[0], pack_command(command))


def _find_late(calls: Sequence[PackedCall], unknown: Sequence[int]) -> Iterator[int]:
    """Return the places of unknown scripts, and of those that came before what they follow."""
    scripts = {*unknown}
    for at in range(unknown[0], len(calls)):
        if at in scripts or calls[at].name in FOLLOWERS:
            yield at


def make_answer_lost(reason: object) -> AnswerLost:
    """Make what stands for an answer that did not arrive."""
    return AnswerLost(f"Redis did not answer: {reason}")


BuildCommands = Callable[[Link], Sequence[BuiltCommand]]
"""A function that makes commands for the server at the other end of a link."""
