"""How visitors are hashed, and the keys for that."""

from __future__ import annotations

import datetime

import pytest
from django.db import OperationalError
from django.utils import timezone

from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import salts
from django_hitcount.db.tables import VisitorSalt
from django_hitcount.outages import Breaker
from django_hitcount.visitors import RequestOrigin, hashing
from tests.app.models import Article
from tests.visiting import DAY, forget_keys, request_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer):
    return Article.objects.create(title="Tea")


class TestKeys:
    KEY = CounterKey(5, "a", "views")

    @pytest.fixture(autouse=True)
    def fresh(self):
        forget_keys()

    def hashes(self, identity="ann", key=KEY, day=DAY):
        (hit,) = hashing.add_visitors([NewHits(key, day, 1)], RequestOrigin(identity, None))
        return hit.visitor

    def test_same_visitor_same_hash(self):
        assert self.hashes() == self.hashes()
        assert len(self.hashes().of_day) == 16

    def test_everything_matters(self, settings):
        found = [
            self.hashes(),
            self.hashes("bob"),
            self.hashes(key=self.KEY._replace(object_id="b")),
            self.hashes(key=self.KEY._replace(counter="downloads")),
            self.hashes(key=self.KEY._replace(content_type_id=6)),
            self.hashes(day=DAY + datetime.timedelta(days=1)),
        ]
        settings.SECRET_KEY = "another"
        found.append(self.hashes())

        assert len({visitor.of_day for visitor in found}) == 7
        assert len({visitor.key_id for visitor in found}) == 3

    @pytest.mark.parametrize(
        ("rotation", "later", "is_same"),
        [("day", 1, False), ("month", 1, True), ("month", 22, False), ("never", 400, True)],
    )
    def test_rotation(self, settings, rotation, later, is_same):
        settings.HITCOUNT = {"VISITOR_KEY_ROTATION": rotation}
        after = self.hashes(day=DAY + datetime.timedelta(days=later))

        assert (self.hashes() == after) is is_same

    def test_other_processes_find_the_same_key(self):
        before = self.hashes()
        forget_keys()

        assert self.hashes() == before
        assert VisitorSalt.objects.count() == 1

    def test_old_keys_cannot_be_made_again(self, buffer):
        before = self.hashes()
        forget_keys()
        VisitorSalt.objects.update(made_at=timezone.now() - datetime.timedelta(days=2))
        self.hashes(day=DAY + datetime.timedelta(days=2))
        assert self.hashes() == before  # Late hits, and intervals across midnight.

        forget_keys()
        # An hour more: a salt that is made just before midnight is that of the next day.
        VisitorSalt.objects.update(made_at=timezone.now() - datetime.timedelta(days=3, hours=1))
        self.hashes(day=DAY + datetime.timedelta(days=3))
        assert self.hashes() != before

    def test_each_period_costs_a_process_one_query(self, settings, django_assert_num_queries):
        settings.HITCOUNT = {"VISITOR_KEY_ROTATION": "month"}
        self.hashes(day=datetime.date(2026, 3, 1))
        forget_keys()

        with django_assert_num_queries(1):
            for number in range(1, 32):
                self.hashes(day=datetime.date(2026, 3, number))

    def test_no_key_is_in_redis(self, redis, redis_buffer, settings):
        settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": {"visitors": True}}}
        Article.objects.create(title="Tea").record_hit(request_of(1))
        salt = bytes(VisitorSalt.objects.get().salt)
        secret = hashing._read_key(day_of().isoformat()).secret
        dump = b"".join(redis.dump(key) + key for key in redis.keys("*"))

        assert not [s for s in (salt, secret) if s in dump or s.hex().encode() in dump]

    def test_without_the_salt_visitors_are_alike(self, article, rule, monkeypatch, caplog):
        rule("daily", visitors=True)

        def fail(size):
            raise OperationalError("away")

        monkeypatch.setattr(salts.secrets, "token_bytes", fail)
        monkeypatch.setattr(hashing, "_breaker", Breaker("the salts"))

        assert [article.record_hit(request_of(1)).counted for _ in range(2)] == [True, True]
        assert caplog.text.count("Cannot read the visitor key") == 2
