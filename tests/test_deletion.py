from __future__ import annotations

import signal
import uuid
from unittest import mock

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.signals import post_delete

from django_hitcount import deletion
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.db.counter_keys import clear_content_types
from django_hitcount.db.tables import DailyHitSlot, HitSlot
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.maintenance import flushing, forgetting
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests import children
from tests.answers import failing_at_first
from tests.app.models import Article, Cover, Featured, Page, Photo, Plain, PlainProxy, Small
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)

MODELS = {
    "int": lambda: Small.objects.create(),
    "bigint": lambda: Article.objects.create(title="Tea"),
    "uuid": lambda: Photo.objects.create(),
    "string": lambda: Page.objects.create(path=f"/a:b/%(){uuid.uuid4()}\nü"),
}


@pytest.fixture(params=MODELS)
def objs(request):
    """Three objects with hits in tables and buffer, on two counters."""
    objs = [MODELS[request.param]() for _ in range(3)]
    record_hits(objs, amount=5)
    flush_hits()
    record_hits(objs)
    record_hits(objs, counter="downloads")
    return objs


def is_forgotten(obj) -> bool:
    flush_hits()
    sums = [*slot_sums([obj]).values(), *daily_sums([obj]).values()]
    sums += [*slot_sums([obj], "downloads").values()]
    return not any(sums) and get_hits(obj) == 0


def revived(obj):
    """The object as it was before it was deleted: another one could get its key."""
    obj.save(force_insert=True)
    return obj


def test_deleted_object_loses_its_hits(buffer, objs):
    pk = objs[0].pk
    objs[0].delete()
    objs[0].pk = pk

    assert is_forgotten(revived(objs[0]))
    assert get_hits(objs[1:]) == dict.fromkeys(objs[1:], 6)


def test_objects_deleted_by_queryset_lose_their_hits(buffer, objs):
    type(objs[0]).objects.filter(pk__in=[obj.pk for obj in objs[:2]]).delete()

    assert [is_forgotten(revived(obj)) for obj in objs[:2]] == [True, True]
    assert get_hits(objs[2]) == 6


def test_rolled_back_deletion_keeps_the_hits(buffer, objs):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        type(objs[0]).objects.all().delete()
        raise ZeroDivisionError

    assert set(get_hits(objs).values()) == {6}


def test_deletion_in_a_savepoint_that_is_rolled_back_keeps_the_hits(buffer):
    articles = Article.objects.bulk_create(Article(title=str(n)) for n in range(3))
    record_hits(articles)
    kept = articles[1]

    with transaction.atomic():
        Article.objects.filter(pk=articles[0].pk).delete()
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            Article.objects.filter(pk=kept.pk).delete()
            raise ZeroDivisionError
        Article.objects.filter(pk=articles[2].pk).delete()

    assert kept.hits == 1
    assert [is_forgotten(revived(articles[n])) for n in (0, 2)] == [True, True]


def test_hundreds_of_objects_cost_a_few_queries(buffer, django_assert_max_num_queries):
    articles = Article.objects.bulk_create(
        Article(title=str(n)) for n in range(deletion.OBJECTS_AT_A_TIME)
    )
    record_hits(articles)
    flush_hits()

    with django_assert_max_num_queries(80):
        Article.objects.all().delete()
        flush_hits()

    assert not HitSlot.objects.exists()
    assert not DailyHitSlot.objects.exists()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite locks the whole file")
def test_transaction_writes_before_it_reads(django_assert_max_num_queries):
    """Or else SQLite would end it at once if another process writes, and not wait for that."""
    article = Article.objects.create(title="Tea")
    clear_content_types()

    with django_assert_max_num_queries(30) as queries:
        article.delete()

    statements = [query["sql"] for query in queries.captured_queries]
    first = statements[statements.index("BEGIN") + 1]
    assert first.startswith("UPDATE")


def test_cascade_deletes_counts_too(buffer):
    photo = Photo.objects.create()
    cover = Cover.objects.create(photo=photo)
    record_hits([photo, cover])
    flush_hits()

    photo.delete()

    flush_hits()
    assert not HitSlot.objects.exists()


def test_model_without_mixin_is_forgotten_once_connected(buffer):
    deletion.register(Plain)
    try:
        plain = Plain.objects.create(name="x")
        record_hit(plain)
        flush_hits()
        plain.delete()
    finally:
        for model in (Plain, PlainProxy):
            post_delete.disconnect(sender=model, dispatch_uid="django_hitcount.deletion")

    flush_hits()
    assert not HitSlot.objects.exists()


def test_deletion_through_a_proxy_is_noticed(buffer):
    article = Article.objects.create(title="Tea")
    plain = Plain.objects.create(name="x")
    deletion.register(Plain)
    try:
        record_hits([article, plain])
        Featured.objects.all().delete()
        PlainProxy.objects.all().delete()
    finally:
        for model in (Plain, PlainProxy):
            post_delete.disconnect(sender=model, dispatch_uid="django_hitcount.deletion")
    flush_hits()

    assert not HitSlot.objects.exists()


def test_only_our_models_pay_for_the_signal():
    assert post_delete.has_listeners(Article)
    assert not post_delete.has_listeners(Plain)


def test_object_with_a_key_that_cannot_be_counted_is_deleted_all_the_same(buffer):
    Page.objects.create(path="x" * 300).delete()

    assert not Page.objects.exists()


def test_batch_that_a_flusher_has_read_does_not_come_back(redis_buffer):
    """The flusher holds the hits in memory, and writes them after the object is gone."""
    article = Article.objects.create(title="Tea")
    record_hit(article)
    deleted = []
    original = flushing.apply

    def delete_before_apply(batch, **options):
        if not deleted:
            deleted.append(article.pk)
            Article.objects.filter(pk=article.pk).delete()
        return original(batch, **options)

    with mock.patch.object(flushing, "apply", delete_before_apply):
        flush_hits()

    assert deleted
    flush_hits()
    assert not HitSlot.objects.exists()


def test_batch_of_a_dead_flusher_does_not_come_back(redis_buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article)
    with mock.patch.object(RedisBuffer, "settle", side_effect=children.die):
        assert children.run(flush_hits) == -signal.SIGKILL

    article.delete()
    flush_hits()

    assert not HitSlot.objects.exists()


def test_deletion_works_while_redis_is_away(redis_buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article)
    with mock.patch.object(RedisBuffer, "discard_objects", side_effect=BufferUnavailable("away")):
        article.delete()
        with pytest.raises(ExceptionGroup):
            flush_hits()

    assert not Article.objects.exists()
    flush_hits()
    assert not HitSlot.objects.exists()
    assert get_hits(revived(article)) == 0


def test_deletion_works_though_forgetting_fails(buffer, caplog):
    """Even if that is a mistake in the package."""
    article = Article.objects.create(title="Tea")
    with mock.patch.object(deletion, "forget_now", side_effect=ZeroDivisionError):
        article.delete()

    assert not Article.objects.exists()
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


def test_deletion_that_meets_a_lock_is_tried_again(buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article)
    flush_hits()
    error = OperationalError("deadlock detected")
    with failing_at_first(forgetting, "take_rows", error, times=2):
        article.delete()
        flush_hits()

    assert not HitSlot.objects.exists()


def test_signal_outside_of_a_transaction_deletes_counts(buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article)
    post_delete.send(Article, instance=article, using="default")

    flush_hits()
    assert get_hits(article) == 0


def test_soft_deleted_object_keeps_its_hits(buffer):
    article = Article.objects.create(title="Tea")
    record_hit(article)

    Article.objects.filter(pk=article.pk).update(title="(deleted)")
    assert article.hits == 1
