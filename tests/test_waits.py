"""The tests tell a wait from a busy machine."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests import children
from tests.waits import waits_for


@pytest.mark.parametrize(("least", "most"), [(0, 0.1), (1, 2)])
def test_wait_is_too_long_or_too_short(least, most):
    with pytest.raises(AssertionError, match="s"), waits_for(least, most):
        time.sleep(0.3)


def test_time_in_which_the_process_was_stopped_does_not_count():
    def stop() -> None:
        with waits_for(0.5, 0.2):
            os.kill(os.getpid(), signal.SIGSTOP)

    pid = children.fork(stop)
    os.waitpid(pid, os.WUNTRACED)  # Until it has stopped.
    time.sleep(0.5)
    os.kill(pid, signal.SIGCONT)

    assert children.wait_for(pid) == 0
