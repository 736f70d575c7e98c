"""Throttles admit at most one caller per interval."""

from __future__ import annotations

import math
import time
from unittest import mock

import pytest
from django.db import transaction
from django.utils.functional import SimpleLazyObject

from django_hitcount import throttle
from django_hitcount.buffers import Buffer, get_buffer
from django_hitcount.buffers.redis.connections import BoundedSocket
from django_hitcount.buffers.redis.link import AnswerLost
from django_hitcount.db.tables import Admission
from django_hitcount.exceptions import BufferUnavailable, InvalidArgument
from django_hitcount.throttle import Throttle
from tests.cache_alias import NOWHERE, change_alias
from tests.redis_server import round_trips
from tests.servers import wait_until
from tests.throttles import BLINK, HOUR, admit, times

pytestmark = pytest.mark.django_db(transaction=True)


class TestInterval:
    def test_one_is_admitted(self, buffer):
        assert [admit() for _ in range(3)] == [True, False, False]

    def test_the_next_one_is_admitted_once_it_is_over(self, buffer):
        for _ in range(3):
            begun = time.time()
            wait_until(lambda: admit(seconds=BLINK), "the first admission")
            wait_until(lambda: admit(seconds=BLINK), "the next admission")
            assert time.time() - begun > BLINK

    def test_refusal_in_the_table_leaves_the_interval_alone(self):
        """TestRedis has the same test."""
        admit(seconds=HOUR)
        before = times()
        admit(seconds=2 * HOUR)

        assert times() == before

    def test_interval_of_the_admitted_caller_counts(self, buffer):
        assert admit("long", HOUR)
        assert not admit("long", BLINK)
        assert admit("short", BLINK)
        wait_until(lambda: admit("short", HOUR), "the end of the short one")

    @pytest.mark.parametrize(
        ("seconds", "milliseconds"),
        [(0.001, 1), (0.0011, 2), (2.007, 2007), (0.1 + 0.2, 301), (366 * 86400, 31_622_400_000)],
    )
    def test_is_never_rounded_down(self, buffer, seconds, milliseconds):
        with mock.patch.object(type(get_buffer()), "admit", return_value=True) as asked:
            assert admit(seconds=seconds)

        asked.assert_called_once_with("mail", milliseconds=milliseconds)

    def test_names_are_compared_byte_for_byte(self, buffer):
        names = ["a", "A", "a ", " a", "ä", "a\u0308", "x" * 149, "x" * 150, "{3}:total", "😀"]

        assert all(admit(name) for name in names)
        assert not any(admit(name) for name in names)

    @pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
    async def test_async_twin_does_the_same(self, buffer):
        assert [await Throttle("mail", HOUR).aadmit() for _ in range(2)] == [True, False]

    def test_custom_buffer_admits_by_the_database(self):
        class Other(Buffer):
            def record(self, hits):
                raise AssertionError

        with mock.patch.object(throttle, "get_buffer", Other):
            assert [admit() for _ in range(2)] == [True, False]

        assert Admission.objects.count() == 1


class TestArguments:
    @pytest.mark.parametrize(
        "name",
        ["", "x" * 151, "a\0b", "\ud800", b"mail", None, 5, SimpleLazyObject(lambda: "mail")],
    )
    def test_name_that_cannot_be_stored(self, name):
        with pytest.raises(InvalidArgument, match=r"Invalid name of a throttle: .*\. [PR]"):
            Throttle(name, 60)

    @pytest.mark.parametrize(
        "seconds",
        [0, -1, 0.0009, 366 * 86400 + 1, math.nan, math.inf, -math.inf, True, False, "60", None],
    )
    def test_interval_that_makes_no_sense(self, seconds):
        with pytest.raises(InvalidArgument, match=r"Invalid interval of a throttle: .*\. Pass"):
            Throttle("mail", seconds)

    def test_error_shows_the_value_but_not_all_of_a_long_one(self):
        with pytest.raises(ValueError, match=r": 'x{12}\.\.\.x{13}'\. Pass a text of 1 to 150 ch"):
            Throttle("x" * 10_000, 60)

    def test_repr_can_be_read_back(self):
        assert repr(Throttle("mail", 0.5)) == "Throttle('mail', 0.5)"


class TestRedis:
    def test_costs_one_round_trip_and_no_sql(self, redis, redis_buffer, django_assert_num_queries):
        admit("warm")
        for expected in (True, False):
            with round_trips(redis) as trips, django_assert_num_queries(0):
                assert admit() is expected
            assert trips() == 1

    def test_refusal_leaves_the_time_limit_alone(self, redis, redis_buffer):
        admit(seconds=HOUR)
        before = redis.pexpiretime("hitcount:throttle:mail")
        admit(seconds=2 * HOUR)

        assert redis.pexpiretime("hitcount:throttle:mail") == before

    def test_rollback_gives_nothing_back(self, redis_buffer):
        with transaction.atomic():
            assert admit()
            transaction.set_rollback(True)

        assert not admit()

    def test_lost_answer_is_no_admission_to_anybody(self, redis_buffer):
        admit("warm")
        lost = mock.patch.object(BoundedSocket, "recv", side_effect=TimeoutError)
        with lost, pytest.raises(AnswerLost):
            admit()
        get_buffer.cache_clear()

        assert not admit()

    def test_away_raises(self, redis_buffer, settings):
        change_alias(settings, LOCATION=NOWHERE)

        for _ in range(2):
            with pytest.raises(BufferUnavailable):
                admit()
