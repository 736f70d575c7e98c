"""Malformed fields are set aside and reported; the hits beside them are flushed."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from django_hitcount.db.counter_keys import counter_key
from django_hitcount.maintenance.flushing import Flush, flush
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import Plain
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"rubbish", b"1"),
        (b"x:views:1", b"1"),
        (b"5:Views:1", b"1"),
        (b"5:views:" + b"x" * 256, b"1"),
        (b"5:views:\xff\xfe", b"1"),
        (b"5:views:a\0b", b"1"),
        (b"5:views:7", b"many"),
        (b"5:views:7", b"1.5"),
        (b"5:views:7", b"99999999999999999999"),
        (b"999999:views:7", b"1"),
        (b"99999999999999999999:views:7", b"1"),
        (b"05:views:7", b"1"),
        (b" 5:views:7", b"1"),
        (b"5:views:7", b"9223372036854775807"),
        (b"-1:views:7", b"1"),
    ],
)
def test_field_is_set_aside_and_the_rest_is_flushed(
    redis, article, caplog, capsys, field, value, names
):
    record_hit(article)
    redis.hset(names.pending, field, value)

    call_command("flush_hits")

    assert slot_sums([article]) == daily_sums([article]) == {article: 1}
    assert redis.hgetall(names.malformed) == {field + b"#0": value}
    assert "malformed" in caplog.text
    assert repr(field) in capsys.readouterr().err
    assert flush() == Flush()


@pytest.mark.parametrize(
    "field",
    [b"5:views:2026-13-01:7", b"5:views:20260101:7", b"5:views:7", b"9999:views:2026-01-01:7"],
)
def test_daily_field(redis, article, field, names):
    record_hit(article)
    redis.hset(names.pending_daily, field, 1)

    assert flush().malformed == (field,)
    assert daily_sums([article]) == {article: 1}
    assert redis.hkeys(names.malformed) == [field + b"#0"]


def test_another_spelling_of_a_field_takes_no_hits_away(redis, article, names, key):
    record_hit(article, amount=5)
    redis.hset(names.pending, "0" + key.text, 1)

    assert flush().malformed == (b"0" + key.text.encode(),)
    assert slot_sums([article]) == {article: 5}


def test_total_that_is_no_number_is_loaded_anew(redis, article, names, key):
    record_hit(article)
    redis.set(names.total(key.text), "many")

    assert record_hit(article).total == 2
    flush()
    assert slot_sums([article]) == {article: 2}


def test_hits_recorded_over_a_malformed_value_count(redis, article, names, key):
    redis.hset(names.pending, key.text, "many")

    assert record_hit(article).total == 1
    flush()
    assert slot_sums([article]) == daily_sums([article]) == {article: 1}
    assert redis.hgetall(names.malformed) == {f"{key.text}#0".encode(): b"many"}


def test_nothing_set_aside_is_overwritten(redis, article, names):
    for value in (b"one", b"two"):
        redis.hset(names.pending, "rubbish", value)
        flush()

    assert sorted(redis.hvals(names.malformed)) == [b"one", b"two"]


def test_hits_of_a_removed_model_are_set_aside(redis, article):
    """Its content type is gone, which the foreign key would not allow."""
    plain = Plain.objects.create(name="x")
    record_hits([plain, article])
    key = counter_key(plain, counter="views")
    ContentType.objects.get_for_model(Plain).delete()
    ContentType.objects.clear_cache()

    done = flush()

    assert done.malformed[0] == key.text.encode()
    assert slot_sums([article]) == {article: 1}
