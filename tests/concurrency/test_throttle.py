"""Many processes ask without a pause; the servers' own clocks say who was admitted when."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.redis.server import RedisServer
from django_hitcount.db import admissions
from django_hitcount.db.tables import Admission
from django_hitcount.throttle import Throttle
from tests import children
from tests import settings as test_settings
from tests.concurrency.board import Board

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

PROCESSES = 50
SECONDS = 10
INTERVAL = 500_000
"""The time in microseconds, as all times here."""


class Admitted(NamedTuple):
    """Two moments that an admission lies between, by each of two clocks."""

    earliest: int
    latest: int
    asked: int
    answered: int


@pytest.fixture
def throttling_buffer(request, buffer):
    if get_buffer().keeps_hits and test_settings.DATABASE != "sqlite":
        pytest.skip("with Redis, a throttle asks no database")


@pytest.mark.usefixtures("throttling_buffer")
def test_fifty_processes_without_a_pause(tmp_path: Path):
    path, asked = tmp_path / "admitted", Board(PROCESSES, 1)
    slowest_path = tmp_path / "slowest"
    throttle = Throttle("mail", INTERVAL / 1_000_000)
    admit = _admit_with_redis if get_buffer().keeps_hits else _admit_with_database
    ends_at = _now() + SECONDS * 1_000_000

    def hammer(row: int) -> None:
        slowest = 0
        with path.open("a", buffering=1) as lines:
            while _now() < ends_at:
                before = _now()
                asked.add(row, 0)
                times, after = admit(throttle), _now()
                slowest = max(slowest, after - before)
                if times:
                    print(*times, before, after, file=lines)
        with slowest_path.open("a") as lines:
            print(slowest, file=lines)

    pids = [children.fork(lambda row=row: hammer(row)) for row in range(PROCESSES)]
    assert [children.wait_for(pid) for pid in pids] == [0] * PROCESSES

    lines = path.read_text().splitlines()
    admitted = sorted(Admitted(*map(int, line.split())) for line in lines)
    closest = min(later.earliest - earlier.latest for earlier, later in pairwise(admitted))
    widest = max(later.latest - earlier.earliest for earlier, later in pairwise(admitted))
    slowest = max(map(int, slowest_path.read_text().split()))
    # Once an interval is over, the next to ask is admitted: on a busy machine, that takes longer.
    longest = INTERVAL + max(INTERVAL, 2 * slowest)
    print(
        f"\n{asked.total()} asked, {len(admitted)} admitted, "
        f"{closest / 1e6:.6f} to {widest / 1e6:.6f} s apart, slowest {slowest / 1e6:.6f} s",
        end=" ",
    )
    assert closest >= INTERVAL
    assert all(later.answered - earlier.asked > INTERVAL for earlier, later in pairwise(admitted))
    assert widest < longest
    assert ends_at - admitted[-1].earliest < longest
    assert len(admitted) > SECONDS * 1_000_000 / longest


def _now() -> int:
    return time.time_ns() // 1000


def _admit_with_database(throttle: Throttle) -> tuple[int, int] | None:
    """The row shows when, and before the COMMIT no other process can admit anybody."""
    take, looks = admissions._take, []

    def take_and_look(*args):
        is_admitted = take(*args)
        looks.append(Admission.objects.values_list("admitted_at", flat=True).get())
        return is_admitted

    with mock.patch.object(admissions, "_take", take_and_look):
        return (looks[-1], looks[-1]) if throttle.admit() else None


def _admit_with_redis(throttle: Throttle) -> tuple[int, int] | None:
    """Redis runs the command between two looks at its clock, and nothing else between them."""
    send, looks = RedisServer.send, []

    def send_and_look(self, commands):
        framed = [("MULTI",), ("TIME",), *commands, ("TIME",), ("EXEC",)]
        before, *replies, after = send(self, framed)[-1]
        looks.extend(int(seconds) * 1_000_000 + int(us) for seconds, us in (before, after))
        return replies

    with mock.patch.object(RedisServer, "send", send_and_look):
        return (looks[0], looks[1]) if throttle.admit() else None
