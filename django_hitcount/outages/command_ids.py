"""Numbers on commands, so that Redis runs each of them once at most."""

from __future__ import annotations

import os
import uuid
from collections import deque
from typing import NamedTuple

REMEMBERED_SECONDS = 7 * 24 * 3600
"""How long Redis knows a recorder's last number: longer than any outage worth surviving."""


class CommandId(NamedTuple):
    """The number of one command: no two commands of a recorder share one."""

    recorder: uuid.UUID
    sequence: int


class CommandIdPool:
    """
    Hands out numbers that grow, each recorder to one command at a time.

    Redis remembers one number per recorder and runs a command only if its number is
    greater; so it may be sent again after its answer was lost. One recorder per command
    under way is enough, and they are used again: a process needs as many as threads.
    """

    def __init__(self) -> None:
        self._idle: deque[CommandId] = deque()
        self._pid = os.getpid()

    def take(self) -> CommandId:
        """The number for a command; give it back when the command was answered."""
        if self._pid != os.getpid():
            # A forked child must not use the numbers of its parent.
            self._idle, self._pid = deque(), os.getpid()
        try:
            recorder, sequence = self._idle.pop()
        except IndexError:
            return CommandId(uuid.uuid4(), 1)
        return CommandId(recorder, sequence + 1)

    def give_back(self, numbered: CommandId) -> None:
        """Let the recorder be used again. Not to be called if the answer was lost."""
        self._idle.append(numbered)
