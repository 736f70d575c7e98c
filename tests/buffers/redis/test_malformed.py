"""Malformed fields are moved and reported; the hits beside them are flushed."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from django_hitcount.counters.days import day_of
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import Flush, flush_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Plain
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


DAY = b"2026-01-01"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"rubbish", b"1"),
        (b"x:views:1", b"1"),
        (b"D:5:views:2026-01-01:7", b"1"),
        (b"d", b"1"),
        (b"d:", b"1"),
        (b"d:5", b"1"),
        (b"d:5:views:7", b"1"),
        (b"d:x:views:" + DAY + b":1", b"1"),
        (b"d:5:Views:" + DAY + b":1", b"1"),
        (b"d:5:views:" + DAY + b":" + b"x" * 256, b"1"),
        (b"d:5:views:" + DAY + b":\xff\xfe", b"1"),
        (b"d:5:views:" + DAY + b":a\0b", b"1"),
        (b"d:5:views:" + DAY + b":7", b"many"),
        (b"d:5:views:" + DAY + b":7", b"1.5"),
        (b"d:5:views:" + DAY + b":7", b"99999999999999999999"),
        (b"d:5:views:" + DAY + b":7", b"9223372036854775807"),
        (b"d:999999:views:" + DAY + b":7", b"1"),
        (b"d:99999999999999999999:views:" + DAY + b":7", b"1"),
        (b"d:05:views:" + DAY + b":7", b"1"),
        (b"d: 5:views:" + DAY + b":7", b"1"),
        (b"d:-1:views:" + DAY + b":7", b"1"),
        (b"d:5:views:2026-13-01:7", b"1"),
        (b"d:5:views:20260101:7", b"1"),
        (b"r:" + DAY, b"1"),
        (b"r:" + DAY + b":views:bot", b"many"),
        (b"r:" + DAY + b":Views:bot", b"1"),
        (b"r:" + DAY + b":views:bot:more", b"1"),
        (b"v:5:views:" + DAY + b":k1", b"1"),
        (b"v:5:views:" + DAY + b"::7", b"1"),
        (b"v:5:views:" + DAY + b":k1:7", b"many"),
    ],
)
def test_field_is_moved_and_the_rest_is_flushed(
    redis, article, caplog, capsys, field, value, names
):
    record_hit(article)
    redis.hset(names.pending, field, value)

    call_command("flush_hits")

    assert slot_sums([article]) == daily_sums([article]) == {article: 1}
    assert redis.hgetall(names.malformed) == {field + b"#0": value}
    assert "malformed" in caplog.text
    assert repr(field) in capsys.readouterr().err
    assert flush_hits() == Flush()


def test_another_spelling_of_a_field_takes_no_hits_away(redis, article, names, key):
    record_hit(article, amount=5)
    field = key.on(day_of()).replace("d:", "d:0", 1)
    redis.hset(names.pending, field, 1)

    assert flush_hits().malformed == (field.encode(),)
    assert slot_sums([article]) == {article: 5}


def test_total_that_is_no_number_is_loaded_anew(redis, article, names, key):
    record_hit(article)
    redis.set(names.total(key.text), "many")

    assert record_hit(article).total == 2
    flush_hits()
    assert slot_sums([article]) == {article: 2}


def test_hits_recorded_over_a_malformed_value_count(redis, article, names, key):
    field = key.on(day_of())
    redis.hset(names.pending, field, "many")

    assert record_hit(article).total == 1
    flush_hits()
    assert slot_sums([article]) == daily_sums([article]) == {article: 1}
    assert redis.hgetall(names.malformed) == {f"?1{field}#0".encode(): b"many"}


def test_nothing_malformed_is_overwritten(redis, article, names):
    for value in (b"one", b"two"):
        record_hit(article)
        redis.hset(names.pending, "rubbish", value)
        flush_hits()

    assert sorted(redis.hvals(names.malformed)) == [b"one", b"two"]


def test_hits_of_a_removed_model_are_malformed(redis, article):
    """Its content type is gone, which the foreign key would not allow."""
    plain = Plain.objects.create(name="x")
    record_hits([plain, article])
    key = counter_key(plain, counter="views")
    ContentType.objects.get_for_model(Plain).delete()
    ContentType.objects.clear_cache()

    done = flush_hits()

    assert done.malformed == (key.on(day_of()).encode(),)
    assert slot_sums([article]) == {article: 1}
