"""IntervalThrottle admits a client once per interval."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from rest_framework import views
from rest_framework.response import Response
from rest_framework.test import force_authenticate

from django_hitcount.db.tables import Admission
from django_hitcount.rest_framework import IntervalThrottle
from tests.cache_alias import NOWHERE, change_alias
from tests.locks import locked_tables
from tests.rest_framework.api import request
from tests.servers import wait_until
from tests.throttles import BLINK, HOUR

pytestmark = pytest.mark.django_db(transaction=True)


class Hourly(IntervalThrottle):
    seconds = HOUR


class Brief(IntervalThrottle):
    seconds = BLINK


def ask(*throttles: type[IntervalThrottle], user: User | None = None, address="", **headers: str):
    class View(views.APIView):
        throttle_classes = throttles or (Hourly,)

        def get(self, request):
            return Response()

    asked = request(**headers)
    asked.META["REMOTE_ADDR"] = address or "203.0.113.1"
    if user:
        force_authenticate(asked, user=user)
    return View.as_view()(asked)


def test_one_is_admitted(buffer):
    assert [ask().status_code for _ in range(3)] == [200, 429, 429]


def test_answer_says_when_to_come_again(buffer):
    ask()

    assert ask().headers["Retry-After"] == "3600"


def test_the_next_one_is_admitted_once_it_is_over(buffer):
    assert ask(Brief).status_code == 200
    wait_until(lambda: ask(Brief).status_code == 200, "the next interval")


def test_clients_are_users_or_addresses(buffer):
    ann, bob = (User.objects.create(username=name) for name in ("ann", "bob"))
    clients = [
        {"user": ann},
        {"user": bob},
        {"address": "203.0.113.1"},
        {"address": "203.0.113.2"},
        {"address": "2001:db8:1:2::1"},
        {"address": "2001:db8:1:3::1"},
    ]

    assert [ask(**client).status_code for client in clients] == [200] * 6
    assert [ask(**client).status_code for client in clients] == [429] * 6
    assert ask(user=ann, address="203.0.113.9").status_code == 429
    assert ask(address="2001:db8:1:2::9").status_code == 429


def test_header_that_a_client_made_up_changes_nothing(buffer):
    found = [ask(**{"X-Forwarded-For": f"198.51.100.{n}"}).status_code for n in range(3)]

    assert found == [200, 429, 429]


def test_each_class_has_intervals_of_its_own(buffer):
    class Another(Hourly):
        pass

    assert [ask(kind).status_code for kind in (Hourly, Another, Hourly, Another)] == [
        *(200, 200),
        *(429, 429),
    ]


def test_proxy_that_is_not_named_holds_up_nobody(buffer):
    proxied = {"address": "10.0.0.1", "X-Forwarded-For": "203.0.113.1"}

    assert [ask(**proxied).status_code for _ in range(2)] == [200, 200]


def test_named_proxy(buffer, settings):
    settings.HITCOUNT = {**settings.HITCOUNT, "TRUSTED_PROXIES": 1}
    found = [
        ask(address="10.0.0.1", **{"X-Forwarded-For": f"203.0.113.{n}"}).status_code
        for n in (1, 1, 2)
    ]

    assert found == [200, 429, 200]


def test_client_without_an_address_is_admitted(buffer):
    assert [ask(address="unix").status_code for _ in range(2)] == [200, 200]


def test_server_that_is_away_holds_up_nobody(redis_buffer, settings, caplog):
    change_alias(settings, LOCATION=NOWHERE)

    assert [ask().status_code for _ in range(2)] == [200, 200]
    assert "A request is not throttled" in caplog.text


def test_database_that_does_not_answer_leaves_the_transaction_of_the_view(settings):
    """PostgreSQL accepts no further query after an error, unless a savepoint was before it."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
    with locked_tables(), transaction.atomic(), connection.cursor() as cursor:
        assert ask().status_code == 200
        cursor.execute("SELECT 1")


def test_neither_addresses_nor_users_are_stored(settings, redis):
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
    ask()
    ask(user=User.objects.create(username="ann", pk=987_654))
    stored = [str(row) for row in Admission.objects.values_list()]

    assert len(stored) == 2
    assert not any(text in row for row in stored for text in ("203.0.113", "987654", "ann"))
