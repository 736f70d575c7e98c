"""The Lua scripts, and calls of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

Command = tuple[Any, ...]
"""A Redis command word by word."""

FRAGMENTS = {
    "record": ("foreign_values", "seen_before"),
    "claim": ("foreign_values",),
    "settle": ("foreign_values",),
    "complete_totals": ("foreign_values", "held_hits"),
    "complete_daily_total": ("foreign_values", "held_hits"),
    "discard": ("foreign_values",),
}
"""Files in ``lua/`` with the local functions that a script calls, by script."""


class Script(NamedTuple):
    """A Lua script and the name that Redis knows it by once loaded."""

    source: str
    sha: str


@lru_cache(maxsize=256)
def script(name: str, run_id: str) -> Script:
    """
    The script in ``lua/<name>.lua``, behind its fragments, for one run of a server.

    A server does not know the scripts of another run. So it rejects calls from behind a proxy
    that hid that the server was started anew, before it does anything.
    """
    source = f"-- For run {run_id}.\n{read_source(name)}"
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@cache
def read_source(name: str) -> str:
    """The source of a script with its fragments, or of a fragment."""
    directory = files(__package__).joinpath("lua")
    parts = [*FRAGMENTS.get(name, ()), name]
    return "\n".join(directory.joinpath(f"{p}.lua").read_text(encoding="utf-8") for p in parts)


class ScriptCall(NamedTuple):
    """The call of a script."""

    name: str
    keys: Sequence[str | bytes]
    args: Sequence[str | int | bytes] = ()

    def by_sha(self, run_id: str) -> Command:
        """The command for a Redis that has the script loaded."""
        return ("EVALSHA", script(self.name, run_id).sha, len(self.keys), *self.keys, *self.args)

    def by_source(self, run_id: str) -> Command:
        """The command for a Redis that does not have it loaded; it loads the script, too."""
        return ("EVAL", script(self.name, run_id).source, len(self.keys), *self.keys, *self.args)


BuildCommands = Callable[[str], "Sequence[ScriptCall | Command]"]
"""Makes commands for a server, given its run id."""
