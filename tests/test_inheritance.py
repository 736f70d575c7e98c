"""A child of multi-table inheritance is the same object as its parent, if they share the key."""

from __future__ import annotations

import pytest
from django.db.models.signals import post_delete
from django.test import RequestFactory

from django_hitcount.counters.primary_keys import counted_model
from django_hitcount.db.tables import DailyHitSlot, HitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountQuerySet
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit, record_hits
from tests.app.models import (
    Article,
    Concert,
    Event,
    Featured,
    FeaturedEvent,
    FeaturedReview,
    Festival,
    Interview,
    LongReview,
    Plain,
    Review,
    Ticket,
)
from tests.browsers import BROWSER
from tests.tables import daily_sums, slot_sums

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("model", "counted"),
    [
        (Article, Article),
        (Featured, Article),
        (Review, Article),
        (FeaturedReview, Article),
        (LongReview, Article),
        (Interview, Article),
        (Concert, Event),
        (FeaturedEvent, Event),
        (Festival, Event),
        (Ticket, Ticket),
    ],
)
def test_counts_as_the_topmost_ancestor_that_shares_the_key(model, counted):
    assert counted_model(model) is counted


@pytest.mark.parametrize("model", [Review, FeaturedReview, LongReview])
def test_child_and_parent_share_one_total(buffer, model):
    child = model.objects.create(title="child")
    parent = Article.objects.get(pk=child.pk)
    record_hit(child)

    assert record_hit(parent).total == 2
    flush_hits()
    assert get_hits([child, parent]) == {child: 2, parent: 2}
    assert slot_sums([parent]) == daily_sums([parent]) == {parent: 2}


def test_lists_of_children_and_of_parents_show_one_number(buffer):
    review = Review.objects.create(title="child")
    record_hit(review, amount=7)
    flush_hits()

    for model in (Article, Review, FeaturedReview):
        rows = model.objects.with_hits()
        assert [*rows.values_list("hits", flat=True)] == [7]
        assert [obj.hits for obj in rows] == [7]


def test_child_and_parent_on_one_page_count_once(buffer):
    review = Review.objects.create(title="child")
    request = RequestFactory(headers=BROWSER).get("/")

    record_hit(review, request, once_per_request=True)
    record_hit(Article.objects.get(pk=review.pk), request, once_per_request=True)

    assert review.hits == 1


def test_child_with_a_key_of_its_own_is_another_object(buffer):
    ticket = Ticket.objects.create(number=77, name="x")
    record_hit(ticket)

    assert get_hits(ticket) == 1
    assert get_hits(Event.objects.get(pk=ticket.event_id)) == 0
    flush_hits()
    assert [*Ticket.objects.with_hits().values_list("hits", flat=True)] == [1]


def test_child_of_two_parents_counts_as_the_one_that_gives_the_key(buffer):
    Plain.objects.create(name="takes the first key")
    festival = Festival.objects.create(name="x")
    record_hit(festival)
    plain = Plain.objects.get(pk=festival.plain_ptr_id)

    assert get_hits(Event.objects.get(pk=festival.pk)) == 1
    assert get_hits(plain) == 0


DELETIONS = {
    "child": lambda pk: Review.objects.get(pk=pk).delete(),
    "parent": lambda pk: Article.objects.get(pk=pk).delete(),
    "proxy of the child": lambda pk: FeaturedReview.objects.get(pk=pk).delete(),
    "proxy of the parent": lambda pk: Featured.objects.get(pk=pk).delete(),
    "queryset of children": lambda pk: Review.objects.filter(pk=pk).delete(),
    "queryset of parents": lambda pk: Article.objects.filter(pk=pk).delete(),
}


@pytest.mark.parametrize("way", DELETIONS)
def test_deleting_child_or_parent_deletes_the_hits_of_both(buffer, way):
    review, other = [Review.objects.create(title="child") for _ in range(2)]
    record_hits([review, Article.objects.get(pk=review.pk), other])
    flush_hits()
    record_hit(review)

    DELETIONS[way](review.pk)
    flush_hits()

    assert not HitSlot.objects.filter(object_id=review.pk).exists()
    assert not DailyHitSlot.objects.filter(object_id=review.pk).exists()
    assert other.hits == 1


@pytest.mark.parametrize("model", [Review, FeaturedReview])
def test_child_that_leaves_its_parent_leaves_the_counts(buffer, model):
    review = model.objects.create(title="child")
    record_hit(review)
    flush_hits()
    record_hit(review)

    review.delete(keep_parents=True)
    flush_hits()

    assert Article.objects.get().hits == 2


DELETED_EVENTS = {
    "child": lambda pk: Concert.objects.get(pk=pk).delete(),
    "parent without the mixin": lambda pk: Event.objects.get(pk=pk).delete(),
    "proxy of the parent": lambda pk: FeaturedEvent.objects.filter(pk=pk).delete(),
}


@pytest.mark.parametrize("way", DELETED_EVENTS)
def test_parent_without_the_mixin_is_connected_with_its_child(buffer, way):
    concert = Concert.objects.create(name="x")
    record_hit(concert)
    flush_hits()

    DELETED_EVENTS[way](concert.pk)
    flush_hits()

    assert not HitSlot.objects.exists()


def test_only_the_model_that_counts_listens():
    assert post_delete.has_listeners(Event)
    assert not post_delete.has_listeners(Concert)


def test_queryset_of_a_parent_without_the_mixin(buffer):
    concert = Concert.objects.create(name="x")
    record_hit(concert)
    flush_hits()

    assert [event.hits for event in HitCountQuerySet(Event).with_hits()] == [1]
