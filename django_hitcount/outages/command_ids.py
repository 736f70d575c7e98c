"""Ids of commands, so that Redis runs each command once at most."""

from __future__ import annotations

import os
import uuid
from collections import deque
from typing import NamedTuple

REMEMBERED_SECONDS = 7 * 24 * 3600
"""How long Redis remembers a recorder's last number: longer than any outage worth surviving."""


class CommandId(NamedTuple):
    """Names one command: no two commands of a recorder share a number."""

    recorder: uuid.UUID
    sequence: int


class CommandIdPool:
    """
    Hands out ids whose numbers grow, each recorder to one command at a time.

    Redis remembers one number per recorder and runs a command only if its number is greater.
    So a command can be sent again after its answer was lost. Each command under way needs a
    recorder of its own. They are used again, so a process needs no more than it has threads.
    """

    def __init__(self) -> None:
        self._idle: deque[CommandId] = deque()
        self._pid = os.getpid()

    def take(self) -> CommandId:
        """The id of a new command; give it back when the command was answered."""
        if self._pid != os.getpid():
            # A forked child must not use the numbers of its parent.
            self._idle, self._pid = deque(), os.getpid()
        try:
            recorder, sequence = self._idle.pop()
        except IndexError:
            return CommandId(uuid.uuid4(), 1)
        return CommandId(recorder, sequence + 1)

    def give_back(self, command_id: CommandId) -> None:
        """Let the recorder be used again. Do not call this if the answer was lost."""
        self._idle.append(command_id)
