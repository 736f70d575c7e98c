"""How many hits of one address count on an object, however many visitors it makes up."""

from __future__ import annotations

import datetime

import pytest
import time_machine
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.test import RequestFactory

from django_hitcount.counters.days import day_of
from django_hitcount.db.seen_visitors import prune_addresses
from django_hitcount.db.tables import CountedAddress, SeenVisitor
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.refusals.registry import reasons_by_name, refusal
from django_hitcount.status import get_refused_hits
from tests.app.models import Article
from tests.buffers.redis.filters import count_marks

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime.datetime(2026, 3, 10, 11, tzinfo=datetime.UTC)
ADDRESS = "198.51.100.7"
LIMIT = 20


def request_of(visitor: int, address: str | None = ADDRESS, user=None, **meta):
    """A request with a new User-Agent each time."""
    agent = f"Mozilla/5.0 (X11; Linux x86_64; rv:{visitor}.0) Gecko/20100101 Firefox/{visitor}.0"
    headers = {"User-Agent": agent, "Accept": "text/html"}
    request = RequestFactory(headers=headers).get("/", REMOTE_ADDR=address or "", **meta)
    request.user = user or AnonymousUser()
    return request


def refused(*days):
    flush_hits()
    days = days or (day_of(),)
    return {row.refusal: row.hits for row in get_refused_hits(first_day=days[0], last_day=days[-1])}


@pytest.fixture
def limit(buffer, settings):
    def apply(repeat="daily", per_address=LIMIT, *, visitors=False, **more):
        options = {"repeat": repeat, "per_address": per_address, "visitors": visitors}
        counters = {"views": options, "downloads": options}
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters, **more}

    return apply


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


@pytest.mark.parametrize("repeat", [3600, "daily", "always"])
def test_one_address_counts_up_to_its_limit(article, limit, repeat):
    limit(repeat)
    with time_machine.travel(NOON):
        hits = [article.record_hit(request_of(n)) for n in range(50)]

        assert [hit.counted for hit in hits] == [True] * LIMIT + [False] * 30
        assert {hit.refusal for hit in hits[LIMIT:]} == {"address_limit"}
        assert [hit.total for hit in hits] == [*range(1, LIMIT + 1), *[LIMIT] * 30]
        assert refused() == {"address_limit": 30}
    assert article.hits == LIMIT


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_rules_have_a_limit_by_default(article, settings, repeat):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"repeat": repeat}}}
    with time_machine.travel(NOON):
        counted = sum(article.record_hit(request_of(n)).counted for n in range(50))

    assert counted == 20


def test_always_has_no_limit_by_default(article):
    assert all(article.record_hit(request_of(n)).counted for n in range(150))
    assert not CountedAddress.objects.exists()


def test_no_limit_if_none_is_wanted(article, limit):
    limit(per_address=None)

    assert all(article.record_hit(request_of(n)).counted for n in range(150))


@pytest.mark.parametrize("repeat", [3600, "daily"])
def test_only_hits_that_count_use_the_limit_up(article, limit, repeat):
    limit(repeat, 3)
    with time_machine.travel(NOON):
        for _ in range(10):
            article.record_hit(request_of(1))
            article.record_hit(RequestFactory().get("/", REMOTE_ADDR=ADDRESS))  # A bot.
        found = [article.record_hit(request_of(n)).refusal for n in (2, 1, 3, 4)]

    assert found == [None, "repeat", None, "address_limit"]


def test_each_address_object_and_counter_by_itself(article, limit):
    limit(per_address=1)
    other = Article.objects.create(title="Coffee")
    counted = [
        record_hit(obj, request_of(visitor, address), counter=counter).counted
        for visitor in (1, 2)
        for obj in (article, other)
        for counter in ("views", "downloads")
        for address in (ADDRESS, "198.51.100.8", "2001:db8::1", "2001:db8:0:1::1")
    ]

    assert counted == [True] * 16 + [False] * 16


def test_a_network_of_ipv6_is_one_address(article, limit):
    limit(per_address=1)
    addresses = [f"2001:db8::{n:x}:1" for n in range(1, 5)]

    found = [article.record_hit(request_of(1, address)).refusal for address in addresses]
    assert found == [None, *["address_limit"] * 3]


def test_without_an_address_there_is_no_limit(article, limit):
    limit(per_address=1)

    assert all(article.record_hit(request_of(n, None)).counted for n in range(5))


def test_hit_without_a_visitor_has_the_limit_of_its_address(article, limit):
    """Otherwise requests without the cookie would count each time."""
    limit(per_address=2, visitors=True, VISITOR_IDENTITY=["cookie"], VISITOR_COOKIE="visitor")
    found = [article.record_hit(request_of(1)).refusal for _ in range(3)]

    assert found == [None, None, "address_limit"]
    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 0


def test_users_of_an_office_are_not_limited(article, limit):
    limit(per_address=2, visitors=True)
    users = [User.objects.create(username=str(n)) for n in range(4)]
    hits = [article.record_hit(request_of(1, user=user)) for user in users for _ in range(2)]

    assert [hit.refusal for hit in hits] == [None, "repeat"] * 4


@pytest.mark.parametrize("remote", ["127.0.0.1", "10.1.2.3", "172.18.0.1", "100.64.0.1", "::1"])
def test_a_proxy_that_is_not_named_is_no_client(article, limit, remote):
    """All visitors would share its limit."""
    limit(per_address=1)
    meta = {"HTTP_X_FORWARDED_FOR": ADDRESS}

    assert all(article.record_hit(request_of(n, remote, **meta)).counted for n in range(5))


@pytest.mark.parametrize("remote", [ADDRESS, "203.0.113.9", "127.0.0.1"])
def test_a_client_cannot_pass_for_a_proxy(article, limit, remote):
    limit(per_address=1)
    forged = {} if remote == "127.0.0.1" else {"HTTP_X_FORWARDED_FOR": "10.0.0.1"}
    found = [article.record_hit(request_of(n, remote, **forged)).refusal for n in range(3)]

    assert found == [None, "address_limit", "address_limit"]


def test_clients_behind_a_proxy_have_a_limit_each(article, limit):
    limit(per_address=1, TRUSTED_PROXIES=1)
    found = []
    for visitor, client in enumerate(["198.51.100.1", "198.51.100.2", "198.51.100.1"]):
        meta = {"HTTP_X_FORWARDED_FOR": f"1.1.1.{visitor}, {client}"}
        found.append(article.record_hit(request_of(visitor, "10.0.0.1", **meta)).refusal)

    assert found == [None, None, "address_limit"]


def test_a_day_has_a_limit_of_its_own(article, limit):
    limit(per_address=1)
    with time_machine.travel(NOON):
        yesterday = NOON - datetime.timedelta(days=1)
        found = [
            article.record_hit(request_of(n), at=at).refusal
            for n, at in enumerate([None, None, yesterday, yesterday])
        ]
    with time_machine.travel(NOON + datetime.timedelta(days=1)):
        found.append(article.record_hit(request_of(9)).refusal)

    assert found == [None, "address_limit", None, "address_limit", None]


def test_each_interval_of_a_day_has_a_limit_of_its_own(article, limit):
    limit(3600, 1)
    found = []
    for n, minutes in enumerate((0, 59, 61, 119, 121)):
        with time_machine.travel(NOON + datetime.timedelta(minutes=minutes)):
            found.append(article.record_hit(request_of(n)).refusal)

    assert found == [None, "address_limit", None, "address_limit", None]


@pytest.mark.parametrize("rotation", ["day", "month"])
def test_an_interval_goes_on_across_midnight(article, limit, rotation):
    """It begins at 23:00 in Berlin, on the last day of a month, and ends at 1:00."""
    limit(7200, 1, VISITOR_KEY_ROTATION=rotation)
    begin = datetime.datetime(2026, 1, 31, 22, tzinfo=datetime.UTC)
    found = []
    for n, minutes in enumerate((0, 30, 61, 119, 121)):
        with time_machine.travel(begin + datetime.timedelta(minutes=minutes)):
            found.append(article.record_hit(request_of(n)).refusal)

    assert found == [None, "address_limit", "address_limit", "address_limit", None]


def test_visitors_beyond_the_limit_are_not_kept(article, limit, redis):
    limit(per_address=3, visitors=True)
    for n in range(30):
        article.record_hit(request_of(n))

    assert article.get_visitors(first_day=day_of(), last_day=day_of()) == 3
    assert SeenVisitor.objects.count() in (0, 3)
    for name in redis.keys("*:seen:*"):
        assert count_marks(redis.get(name)) == 3


def test_many_objects_at_once(article, limit):
    limit(per_address=1)
    articles = [article, *(Article.objects.create(title=str(n)) for n in range(30))]
    article.record_hit(request_of(1))
    hits = record_hits(articles, request_of(2))
    again = record_hits([articles[1], articles[1]], request_of(3, "198.51.100.8"))

    assert [hit.refusal for hit in hits] == ["address_limit"] + [None] * 30
    assert [hit.total for hit in hits] == [1] * 31
    assert [hit.refusal for hit in again] == [None, "address_limit"]


@pytest.mark.parametrize("repeat", [3600, "daily", "always"])
def test_hit_that_is_refused_beside_others_stays_so(article, limit, repeat):
    """Its visitor is not known after it."""
    limit(repeat, 2)
    articles = [article, Article.objects.create(title="Milk")]
    hits = record_hits(articles, request_of(1), refusals=[lambda context: context.obj == article])

    assert [(hit.refusal, hit.total) for hit in hits] == [("caller", 0), (None, 1)]
    assert article.record_hit(request_of(1)).counted


def test_an_amount_is_one_hit(article, limit):
    limit(per_address=2)
    found = [article.record_hit(request_of(n), amount=5).refusal for n in range(3)]

    assert found == [None, None, "address_limit"]
    assert article.hits == 10


def test_a_rollback_gives_the_hit_back(article, limit):
    limit(per_address=1)
    with transaction.atomic():
        article.record_hit(request_of(1))
        transaction.set_rollback(True)

    assert article.record_hit(request_of(2)).counted
    assert not article.record_hit(request_of(3)).counted


def test_rows_go_when_their_interval_is_over(article, settings):
    counters = {"views": {"repeat": "daily"}, "downloads": {"repeat": 3600}}
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}
    for days in range(4):
        with time_machine.travel(NOON + datetime.timedelta(days=days)):
            for counter in counters:
                record_hit(article, request_of(1), counter=counter)
    assert CountedAddress.objects.count() in (0, 8)
    with time_machine.travel(NOON + datetime.timedelta(days=3)):
        prune_addresses()

    assert CountedAddress.objects.count() in (0, 4)


def test_rows_stay_until_their_interval_is_over(article, limit):
    limit(7 * 24 * 3600, 1, VISITOR_KEY_ROTATION="month")
    begin = datetime.datetime(2026, 3, 5, 12, tzinfo=datetime.UTC)  # A Thursday, as in 1970.
    found = []
    for n, days in enumerate((0, 5, 7)):
        with time_machine.travel(begin + datetime.timedelta(days=days)):
            prune_addresses()
            found.append(article.record_hit(request_of(n)).refusal)

    assert found == [None, "address_limit", None]


def test_more_rows_than_one_statement_takes_are_pruned(db):
    rows = [CountedAddress(name=f"2026-03-01:{n:032x}", hits=1) for n in range(1100)]
    CountedAddress.objects.bulk_create([*rows, CountedAddress(name="2999-01-01:a", hits=1)])
    prune_addresses()

    assert [row.name for row in CountedAddress.objects.all()] == ["2999-01-01:a"]


def test_refused_hits_have_a_reason():
    assert reasons_by_name()["address_limit"]
    with pytest.raises(ValueError, match="'address_limit'"):
        refusal("address_limit", "It is ours.")(bool)
