"""
The Lua scripts, and calls of them.

Scripts call functions of other files in ``lua/``. Their source begins with these files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from hiredis import pack_command

Command = tuple[Any, ...]
"""A Redis command: its name and its arguments."""

SHARED = ("batch_names", "held_hits", "sketches")
"""The files in ``lua/`` that the source of each script but record begins with."""

RECORD = (
    *("batch_names", "seen_before", "record"),
    # What follows is only run, and its functions are only made, if the script is not over yet.
    *("held_hits", "begun_sketches", "finish_record"),
)
"""The files of record, which each hit runs: it makes no function that it does not need."""


class Script(NamedTuple):
    """A Lua script and the name that Redis knows it by once loaded."""

    source: str
    sha: str


@lru_cache(maxsize=256)
def script(name: str, run_id: str) -> Script:
    """
    Return the script in ``lua/<name>.lua`` for one run of a server.

    The source contains the run, so a server does not know the scripts of another run. If it was
    restarted behind a proxy that hides this, it rejects calls before it does anything.
    """
    source = f"-- For run {run_id}.\n{read_source(name)}"
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@cache
def read_source(name: str) -> str:
    """Read the source of a script."""
    directory = files(__package__).joinpath("lua")
    parts = RECORD if name == "record" else (*SHARED, name)
    return "\n".join(directory.joinpath(f"{p}.lua").read_text(encoding="utf-8") for p in parts)


class ScriptCall(NamedTuple):
    """The call of a script."""

    name: str
    keys: Sequence[str | bytes]
    args: Sequence[str | int | bytes] = ()

    def pack(self, run_id: str) -> bytes:
        """Return the command as it is sent, for a server that has loaded the script."""
        sha = script(self.name, run_id).sha
        words: Command = ("EVALSHA", sha, len(self.keys), *self.keys, *self.args)
        packed: bytes = pack_command(words)
        return packed


class PackedCall(NamedTuple):
    """The call of a script as ScriptCall.pack() returns it."""

    name: str
    packed: bytes


def pack_word(word: str) -> bytes:
    """Return a word of a command as it is sent."""
    encoded = word.encode()
    return b"$%d\r\n%b\r\n" % (len(encoded), encoded)


EVALSHA = pack_word("EVALSHA")

GAP = "\0gap"
"""In place of a word that is not known yet. No other word of a call is the same."""


def pack_gaps(call: ScriptCall, run_id: str) -> bytes:
    """Pack a call in which some words are GAP, for fill_gaps()."""
    escaped = call.pack(run_id).replace(b"%", b"%%")
    return escaped.replace(pack_word(GAP), b"$%d\r\n%b\r\n")


def fill_gaps(name: str, text: bytes, words: Sequence[bytes]) -> PackedCall:
    """Fill the gaps of a packed call with ``words``."""
    lengths_and_words = chain.from_iterable(zip(map(len, words), words, strict=True))
    return PackedCall(name, text % tuple(lengths_and_words))


def pack_with_source(call: PackedCall, run_id: str) -> bytes:
    """Return a packed call with the source of the script, which loads it."""
    source, sha = script(call.name, run_id)
    words, _, rest = call.packed.partition(EVALSHA)
    return b"".join((words, pack_word("EVAL"), pack_word(source), rest[len(pack_word(sha)) :]))
