"""
The states of Redis: a real Valkey that is set to any of them. A message in a state is run once.

A state has all keys, the run of the server, and the scripts that it has loaded. The server's clock
stands still: scripts get a constant in place of TIME.
"""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import hiredis

from tests.laws.schedules.processes import NOON

Command = tuple[bytes, ...]

CHATTER = {b"HELLO", b"AUTH", b"CLIENT", b"SELECT", b"PING", b"INFO", b"COMMAND", b"CONFIG"}
"""Commands that concern the connection or the server. Their answers only depend on the run."""

EMPTY = 0
"""The keys of a Redis that has none."""

SNAPSHOT = b"""
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  found[#found + 1] = {key, redis.call('DUMP', key), redis.call('PTTL', key)}
end
return found
"""
TIME = re.compile(rb"""redis\.call\(['"]TIME['"]\)""")
UNKNOWN_SHA = b"0" * 40


class RedisState(NamedTuple):
    """What Redis has."""

    keys: int
    """The number of a set of keys and values."""

    run: int
    """How often it was started."""

    scripts: frozenset[bytes]


class Key(NamedTuple):
    """A key, its value in Redis' own form, and how long it lives."""

    name: bytes
    value: bytes
    milliseconds: int


def run_id(run: int) -> bytes:
    """Return the run id that a server reports."""
    return hashlib.sha1(b"run %d" % run).hexdigest().encode()


class Valkey:
    """Sends messages to a server in any state."""

    def __init__(self, host: str, port: int, *, database: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._contents: list[tuple[Key, ...]] = [()]
        self._ids: dict[frozenset[Any], int] = {frozenset(): EMPTY}
        self._answers: dict[tuple[RedisState, bytes, int | None], tuple[bytes, RedisState]] = {}
        self._chatter: dict[tuple[Command, int], bytes] = {}
        self._sources: dict[bytes, bytes] = {}
        self._parsed: dict[bytes, list[Command]] = {}
        self._loaded: int | None = None
        self._protocol = b"2"
        self.runs = 0
        self.first = RedisState(EMPTY, 0, frozenset())
        self._ask([(b"SELECT", str(database).encode())])

    def close(self) -> None:
        self._socket.close()

    def parse(self, message: bytes) -> list[Command]:
        """Return the commands of a message."""
        found = self._parsed.get(message)
        if found is None:
            found = self._parsed[message] = [*_read_commands(message)]
        return found

    def is_chatter(self, message: bytes) -> bool:
        """Whether no command of the message touches a key."""
        return all(command[0].upper() in CHATTER for command in self.parse(message))

    def run(
        self, state: RedisState, message: bytes, commands: int | None = None
    ) -> tuple[bytes, RedisState]:
        """Run the first ``commands`` of a message, or all. Return the answers and the new state."""
        found = self._answers.get((state, message, commands))
        if found is None:
            found = self._really_run(state, self.parse(message)[:commands])
            self._answers[state, message, commands] = found
        return found

    def _really_run(self, state: RedisState, commands: list[Command]) -> tuple[bytes, RedisState]:
        if all(command[0].upper() in CHATTER for command in commands):
            return b"".join(self._chat(command, state.run) for command in commands), state
        self.runs += 1
        scripts = {*state.scripts}
        words = [self._rewrite(command, scripts) for command in commands]
        load = [] if self._loaded == state.keys else [*self._load_commands(state.keys)]
        replies, keys = self._ask_and_look([*load, *words])
        own = [
            self._chat(command, state.run) if command[0].upper() in CHATTER else reply
            for command, reply in zip(commands, replies[len(load) :], strict=True)
        ]
        self._loaded = self._remember(keys)
        return b"".join(own), RedisState(self._loaded, state.run, frozenset(scripts))

    def _rewrite(self, command: Command, scripts: set[bytes]) -> Command:
        """Let a script find the constant time, and no script that its run has not loaded."""
        word = command[0].upper()
        if word == b"EVAL":
            source = TIME.sub(b"({'%d','0'})" % NOON, command[1])
            sha = hashlib.sha1(command[1]).hexdigest().encode()
            self._sources[sha] = hashlib.sha1(source).hexdigest().encode()
            scripts.add(sha)
            return (command[0], source, *command[2:])
        if word == b"EVALSHA":
            sha = self._sources[command[1]] if command[1] in scripts else UNKNOWN_SHA
            return (command[0], sha, *command[2:])
        assert word != b"SCRIPT", "scripts must be loaded by EVAL"
        return command

    def _chat(self, command: Command, run: int) -> bytes:
        """Return the answer to a command that touches no key: always the same one."""
        if command[0].upper() == b"HELLO":
            self._protocol = command[1]
        found = self._chatter.get((command, run))
        if found is None:
            (found,) = self._ask([command])
            if command[0].upper() == b"INFO":
                found = _replace_run(found, run)
            self._chatter[command, run] = found
        return found

    def _load_commands(self, keys: int) -> Iterable[Command]:
        yield (b"FLUSHDB",)
        for key in self._contents[keys]:
            yield (b"RESTORE", key.name, b"%d" % max(key.milliseconds, 0), key.value)

    def _remember(self, keys: Iterable[Key]) -> int:
        content = tuple(sorted(keys))
        known = frozenset((key.name, key.value, key.milliseconds > 0) for key in content)
        found = self._ids.get(known)
        if found is None:
            found = self._ids[known] = len(self._contents)
            self._contents.append(content)
        return found

    def _ask(self, commands: Sequence[Command]) -> list[bytes]:
        """Send commands. Return the answer to each as it came."""
        self._socket.sendall(b"".join(map(_pack, commands)))
        return self._read(len(commands))[0]

    def _read(self, number: int) -> tuple[list[bytes], bytes]:
        """Return ``number`` answers as they came, and the beginning of the next one."""
        replies: list[bytes] = []
        received, start = b"", 0
        while len(replies) < number:
            end = _end_of_reply(received, start)
            if end is None:
                received += self._socket.recv(1 << 20)
            else:
                replies.append(received[start:end])
                start = end
        return replies, received[start:]

    def _ask_and_look(self, commands: Sequence[Command]) -> tuple[list[bytes], list[Key]]:
        """As _ask(), and return all keys after that."""
        self._socket.sendall(b"".join(map(_pack, [*commands, (b"EVAL", SNAPSHOT, b"0")])))
        replies, pending = self._read(len(commands))
        reader = hiredis.Reader()
        reader.feed(pending)
        while (found := reader.gets()) is False:
            reader.feed(self._socket.recv(1 << 20))
        return replies, [Key(*key) for key in found]

    def names(self, state: RedisState) -> list[bytes]:
        """Return the names of all keys."""
        return [key.name for key in self._contents[state.keys]]

    def without(self, state: RedisState, name: bytes) -> RedisState:
        """Return the state without a key."""
        left = [key for key in self._contents[state.keys] if key.name != name]
        return state._replace(keys=self._remember(left))

    def restarted(self, state: RedisState, keys: int) -> RedisState:
        """Return the state of a server that was started with these keys."""
        return RedisState(keys, state.run + 1, frozenset())

    def describe(self, message: bytes) -> str:
        """Return the commands of a message for people, shortened."""
        return " ".join(map(self._describe, self.parse(message)))

    def _describe(self, command: Command) -> str:
        if command[0].upper() not in (b"EVALSHA", b"EVAL"):
            return _shorten(b" ".join(command[:3]))
        number = int(command[2])
        arguments = command[3 + number :]
        return f"script({_shorten(command[3])}, ..., {_shorten(b' '.join(arguments))})"


def _shorten(text: bytes) -> str:
    return text.decode(errors="replace")[:90]


def _replace_run(reply: bytes, run: int) -> bytes:
    return re.sub(rb"run_id:\w{40}", b"run_id:" + run_id(run), reply)


def _pack(command: Command) -> bytes:
    parts = [b"*%d\r\n" % len(command)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in command]
    return b"".join(parts)


def _read_commands(message: bytes) -> Iterable[Command]:
    reader = hiredis.Reader()
    reader.feed(message)
    while (words := reader.gets()) is not False:
        yield tuple(words)


def _end_of_reply(data: bytes, start: int) -> int | None:
    """Return where the reply that begins at ``start`` ends; None if the rest is to come."""
    line = data.find(b"\r\n", start)
    if line < 0:
        return None
    kind, end = data[start : start + 1], line + 2
    if kind in b"$=!":
        end += max(int(data[start + 1 : line]) + 2, 0) if data[start + 1 : line] != b"-1" else 0
        return end if end <= len(data) else None
    if kind in b"*~>%":
        for _ in range(int(data[start + 1 : line]) * (2 if kind == b"%" else 1)):
            following = _end_of_reply(data, end)
            if following is None:
                return None
            end = following
    return end
