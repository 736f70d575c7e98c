"""Ids of commands, so that Redis runs each command at most once."""

from __future__ import annotations

import os
import uuid
from collections import deque
from typing import NamedTuple

REMEMBERED_SECONDS = 7 * 24 * 3600
"""How long Redis remembers the last number of a recorder: longer than an outage should last."""


class CommandId(NamedTuple):
    """The id of one command: a recorder, which is a random id, and a number that it uses once."""

    recorder: uuid.UUID
    sequence: int


class CommandIdPool:
    """
    Creates the ids of commands. Each recorder numbers one command at a time.

    Redis remembers the last number of each recorder, and runs a command only if its number is
    greater. So a command can be sent again after its answer was lost. Commands that are sent at the
    same time need different recorders. Recorders are reused, so a process has at most one per
    thread.
    """

    def __init__(self) -> None:
        self._idle: deque[CommandId] = deque()
        self._pid = os.getpid()

    def take(self) -> CommandId:
        """Return the id for a new command. Give it back when Redis has answered."""
        if self._pid != os.getpid():
            # After a fork, the child must not use the recorders of its parent.
            self._idle, self._pid = deque(), os.getpid()
        try:
            recorder, sequence = self._idle.pop()
        except IndexError:
            return CommandId(uuid.uuid4(), 1)
        return CommandId(recorder, sequence + 1)

    def give_back(self, command_id: CommandId) -> None:
        """Allow the recorder to be reused. Do not call this if the answer was lost."""
        self._idle.append(command_id)
