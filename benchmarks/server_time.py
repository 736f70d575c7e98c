"""
Measure how long Redis itself takes for a record: the rest of a record can run on many machines.

What it is compared with is a script that has nothing but the commands that the record ran, and gets
their keys and arguments as any script does. Its keys are copies: the same commands again and again
would leave less in a filter of visitors than the records have put there.
"""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from benchmarks.timing import Subject

RECORDS = 100
"""Records whose mean is a measurement."""

WARM_UP = 20
MARKER = "end of the record"
COPY = b"copy:"
WORD = re.compile(r'"(?:[^"\\]|\\.)*"')


def measure(client: Any, subject: Subject, *, turns: int) -> tuple[float, float]:
    """Return the microseconds of a record, and those of a script of the same commands."""
    ours, same = [], []
    with subject.surroundings():
        for _ in range(WARM_UP):
            subject.run(subject.prepare())
        commands = [*_copy_keys(client, _list_commands(client, subject))]
        words = [*{word: None for _, *words in commands for word in words}]
        script = client.script_load(
            "\n".join(_write_call(*command, words=words) for command in commands)
        )
        for _ in range(turns):
            prepared = [subject.prepare() for _ in range(RECORDS)]
            client.config_resetstat()
            for one in prepared:
                subject.run(one)
            ours.append(_read_microseconds(client))
            client.config_resetstat()
            for _ in range(RECORDS):
                client.evalsha(script, 0, *words)
            same.append(_read_microseconds(client))
    return median(ours), median(same)


def _read_microseconds(client: Any) -> float:
    return float(client.info("commandstats")["cmdstat_evalsha"]["usec_per_call"])


def _list_commands(client: Any, subject: Subject) -> Iterator[list[bytes]]:
    """Return the commands that the script of a record runs, as MONITOR shows them."""
    options = client.connection_pool.connection_kwargs
    with socket.create_connection((options["host"], options["port"])) as sock:
        sock.sendall(b"MONITOR\r\n")
        lines = sock.makefile("r", encoding="latin-1")
        lines.readline()  # OK.
        subject.run(subject.prepare())
        client.echo(MARKER)
        for line in lines:
            if MARKER in line:
                return
            if " lua] " in line:
                yield [ast.literal_eval(f"b{word}") for word in WORD.findall(line)]


def _copy_keys(client: Any, commands: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
    """Copy the keys of commands, and return the commands on the copies."""
    for name, *rest in commands:
        if rest:
            key, *arguments = rest
            client.copy(key, COPY + key)  # Does nothing if there is a copy.
            rest = [COPY + key, *arguments]
        yield [name, *rest]


def _write_call(name: bytes, *arguments: bytes, words: list[bytes]) -> str:
    places = [f"ARGV[{words.index(argument) + 1}]" for argument in arguments]
    return f"redis.call({', '.join([repr(name.decode()), *places])})"
