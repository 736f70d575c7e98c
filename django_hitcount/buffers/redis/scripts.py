"""
The Lua scripts, and calls of them.

Some scripts call local functions of other files in ``lua/``, the fragments. Their source begins
with these files: see FRAGMENTS.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

Command = tuple[Any, ...]
"""A Redis command: its name and its arguments."""

EPOCH_BITS = 48
"""Length of the number that an epoch begins with. Two are the same with a chance of 1 in 10^14."""

FRAGMENTS = {
    "record": (
        *("common_hit", "foreign_values", "batch_names", "held_hits", "running_totals"),
        *("begun_sketches", "seen_before"),
    ),
    "find_commands": ("batch_names",),
    "read_totals": ("foreign_values", "batch_names", "held_hits"),
    "held_totals": ("foreign_values", "batch_names", "held_hits"),
    "keep_totals": ("foreign_values", "batch_names", "held_hits"),
    "claim": ("foreign_values", "batch_names"),
    "read_batch": ("batch_names",),
    "settle": ("foreign_values", "batch_names"),
    "held_days": ("foreign_values", "batch_names", "held_hits"),
    "discard": ("foreign_values",),
    "read_visitors": ("foreign_values", "sketches"),
    "keep_visitors": ("foreign_values", "batch_names", "held_hits", "sketches"),
    "merge_sketches": ("sketches",),
}
"""By script, the files in ``lua/`` that its source begins with: it calls their functions."""


class Script(NamedTuple):
    """A Lua script and the name that Redis knows it by once loaded."""

    source: str
    sha: str


@lru_cache(maxsize=256)
def script(name: str, run_id: str) -> Script:
    """
    Return the script in ``lua/<name>.lua``, with its fragments, for one run of a server.

    The source contains the run, so a server does not know the scripts of another run. If it was
    restarted behind a proxy that hides this, it rejects calls before it does anything.
    """
    source = f"-- For run {run_id}.\n{read_source(name)}"
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@cache
def read_source(name: str) -> str:
    """Read the source of a script with its fragments, or of a fragment."""
    directory = files(__package__).joinpath("lua")
    parts = [*FRAGMENTS.get(name, ()), name]
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


def number_epochs(calls: Iterable[ScriptCall]) -> list[ScriptCall]:
    """Give each call a random number, with which the epoch of its partition may begin."""
    return [call._replace(args=[random.getrandbits(EPOCH_BITS), *call.args]) for call in calls]
