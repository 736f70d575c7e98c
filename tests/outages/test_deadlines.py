from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest
from redis import ConnectionPool

from django_hitcount.buffers.redis import connections
from django_hitcount.buffers.redis.connections import BoundedSocket, bound_waits
from django_hitcount.outages import waits
from django_hitcount.outages.waits import Deadline, pause_deadline, seconds_left


def test_there_is_none_outside():
    assert seconds_left() is None
    with Deadline(5):
        assert 4 < seconds_left() <= 5
    assert seconds_left() is None


@pytest.mark.parametrize(("outer", "inner"), [(5, 50), (50, 5)])
def test_the_earlier_of_two_holds(outer, inner):
    with Deadline(outer), Deadline(inner):
        assert 4 < seconds_left() <= 5


def test_pause_postpones_it(monkeypatch):
    now = 100.0
    monkeypatch.setattr(waits, "time", SimpleNamespace(monotonic=lambda: now))
    with Deadline(5):
        now = 102.0
        with pause_deadline():
            now = 150.0
        assert seconds_left() == 3


@pytest.fixture
def sockets():
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_socket_waits_until_the_deadline(sockets):
    bounded = BoundedSocket(sockets[0], 60)
    with Deadline(0.01):
        with pytest.raises(TimeoutError):
            bounded.recv(1)
        with pytest.raises(TimeoutError, match="over"):
            bounded.recv_into(bytearray(1))


def test_socket_keeps_its_own_timeout_if_that_is_shorter(sockets):
    bounded = BoundedSocket(sockets[0], 0.01)
    with Deadline(60), pytest.raises(TimeoutError):
        bounded.recv(1)
    assert sockets[0].gettimeout() == 0.01


def test_timeout_of_one_call_is_not_that_of_the_next(sockets):
    here, there = sockets
    bounded = BoundedSocket(here, 60)
    there.sendall(b"xy")
    with Deadline(1):
        bounded.recv(1)
    assert here.gettimeout() == 60


def test_non_blocking_socket_does_not_wait(sockets):
    bounded = BoundedSocket(sockets[0], 60)
    bounded.settimeout(0)
    with Deadline(60), pytest.raises(BlockingIOError):
        bounded.recv(1)


def test_connecting_blocks_though_the_deadline_is_over(monkeypatch):
    monkeypatch.setattr(connections, "SHORTEST_SECONDS", 20)
    with socket.create_server(("127.0.0.1", 0)) as server, Deadline(0):
        pool = ConnectionPool(port=server.getsockname()[1])
        bound_waits(pool)
        pool.make_connection()._connect().close()
