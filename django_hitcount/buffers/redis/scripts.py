"""
The Lua scripts, and calls of them.

Scripts call functions of other files in ``lua/``. Their source begins with these files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

Command = tuple[Any, ...]
"""A Redis command: its name and its arguments."""

SHARED = ("batch_names", "held_hits")
"""The files in ``lua/`` that the source of a script begins with, unless PARTS says otherwise."""

PARTS = {
    "record": (
        *("batch_names", "seen_before", "record"),
        # What follows is only run, and its functions are only made, if the script is not over yet.
        *("held_hits", "begun_sketches", "finish_record"),
    ),
    "read_visitors": (*SHARED, "kept_visitors", "read_visitors"),
    "keep_visitors": (*SHARED, "kept_visitors", "keep_visitors"),
    "drop_kept": (*SHARED, "kept_visitors", "drop_kept"),
}
"""By script, all files of its source, in order."""


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
    parts = PARTS.get(name, (*SHARED, name))
    return "\n".join(directory.joinpath(f"{p}.lua").read_text(encoding="utf-8") for p in parts)


class ScriptCall(NamedTuple):
    """The call of a script."""

    name: str
    keys: Sequence[str | bytes]
    args: Sequence[str | int | bytes] = ()

    def by_sha(self, run_id: str) -> Command:
        """Return the command for a server that has loaded the script."""
        return ("EVALSHA", script(self.name, run_id).sha, len(self.keys), *self.keys, *self.args)

    def by_source(self, run_id: str) -> Command:
        """Return the command that also loads the script."""
        return ("EVAL", script(self.name, run_id).source, len(self.keys), *self.keys, *self.args)
