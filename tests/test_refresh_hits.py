"""Totals that Redis keeps are void when something else has changed the tables."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.core.management.commands import flush as flush_command

from django_hitcount.counters.days import last_days
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.db.tables import DailyHitSlot, HitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.page_numbers import page_number
from django_hitcount.reading import get_hits, refresh_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Article
from tests.cache_alias import NOWHERE, change_alias
from tests.redis_server import names_of
from tests.visiting import set_rule

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(db) -> Article:
    return Article.objects.create(title="Tea")


def restore(hits: int) -> None:
    """Bring the tables back to an older state, as a backup does."""
    for model in (HitSlot, DailyHitSlot):
        model.objects.update(hits=hits)


def test_backup_is_restored(redis_buffer, article):
    record_hit(article, amount=19)
    flush_hits()
    record_hit(article)
    restore(12)
    assert get_hits(article) == 20

    call_command("refresh_hits")

    assert get_hits(article) == 13
    flush_hits()
    assert get_hits(article) == 13


def test_processes_without_redis_counted_beside_those_with_redis(redis_buffer, article, settings):
    with_redis = settings.HITCOUNT
    assert record_hit(article).total == 1
    settings.HITCOUNT = {**with_redis, "REDIS": None}
    record_hit(article, amount=5)
    settings.HITCOUNT = with_redis
    assert get_hits(article) == 1

    refresh_hits()

    assert get_hits(article) == 6


@pytest.mark.parametrize("command", [flush_command.Command(), "migrate"])
def test_command_that_may_change_all_rows(redis_buffer, article, command):
    record_hit(article, amount=11)
    flush_hits()
    for model in (HitSlot, DailyHitSlot):
        model.objects.all().delete()
    assert get_hits(article) == 11

    call_command(command, interactive=False, verbosity=0)

    assert get_hits(article) == 0


def test_redis_databases_are_swapped(redis, redis_buffer, article):
    """The other one knows an old total, and hits of its own."""
    record_hit(article, amount=7)
    flush_hits()
    db = redis.connection_pool.connection_kwargs["db"]
    for key in redis.scan_iter():
        redis.copy(key, key, destination_db=db + 1)
    record_hit(article, amount=4)
    flush_hits()
    redis.swapdb(db, db + 1)
    assert get_hits(article) == 7

    call_command("refresh_hits")

    assert get_hits(article) == 11


def test_visitors_are_read_again(redis, redis_buffer, article, settings):
    set_rule(settings, visitors=True)
    week = last_days(7)
    page_number(None, article, counter="views", days=week, of_visitors=True)
    assert [*redis.scan_iter("*:kept_visitors:*")]

    refresh_hits()

    assert not [*redis.scan_iter("*:kept_visitors:*")]


def test_hits_that_wait_and_other_keys_stay(redis, redis_buffer, settings):
    set_rule(settings, repeat="daily", visitors=True)
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(40))
    record_hits(articles)
    redis.set("hitcount:total:7", "another app")
    sketch = names_of(redis, counter_key(articles[0], counter="views")).sketch("x:total:y")
    redis.pfadd(sketch, "a")
    totals = {
        names_of(redis, key).total(key.text).encode()
        for key in (counter_key(article, counter="views") for article in articles)
    }
    before = {key for key in redis.scan_iter() if not key.endswith(b":epoch")}
    assert totals < before

    refresh_hits()

    assert {key for key in redis.scan_iter() if not key.endswith(b":epoch")} == before - totals
    assert get_hits(articles) == dict.fromkeys(articles, 1)


def test_total_that_is_being_loaded_is_not_kept(redis_buffer, article, monkeypatch):
    """Its sum is from before the tables changed."""
    record_hit(article, amount=3)
    flush_hits()
    refresh_hits()
    keep = redis_buffer.keep_totals

    def keep_after_a_reset(self, *args, **kwargs):
        monkeypatch.undo()
        restore(1)
        refresh_hits()
        return keep(*args, **kwargs)

    monkeypatch.setattr(type(redis_buffer), "keep_totals", keep_after_a_reset)
    assert get_hits(article) == 3  # It was right when it was read.
    assert get_hits(article) == 1


def test_redis_away(redis_buffer, article, settings, caplog):
    change_alias(settings, LOCATION=NOWHERE)

    with pytest.raises(CommandError, match="Redis cannot be reached"):
        call_command("refresh_hits")
    call_command("migrate", verbosity=0)
    assert "refresh_hits" in caplog.text


def test_without_redis(article, settings):
    settings.HITCOUNT = {"REDIS": None}
    record_hit(article)

    call_command("refresh_hits")

    assert get_hits(article) == 1


def test_command_says_that_it_is_done(buffer, capsys):
    call_command("refresh_hits")
    assert capsys.readouterr().out == "All numbers will be read from the tables again.\n"

    call_command("refresh_hits", verbosity=0)
    assert capsys.readouterr().out == ""
