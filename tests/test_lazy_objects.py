"""Objects like ``request.user``, which only look like their model, in all functions for objects."""

from __future__ import annotations

import datetime
from typing import Any, cast

import pytest
from django.template import Context, Template
from django.utils.functional import SimpleLazyObject

from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.db.tables import HitSlot
from django_hitcount.deletion import forget_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.prefetching import prefetch_hits
from django_hitcount.reading import get_hits, get_visitors
from django_hitcount.recording import record_hit, record_hits
from django_hitcount.series import hits_by_day, visitors_by_day
from tests.app.models import Article
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)

TAGS = Template(
    "{% load hitcount %}{% prefetch_hits objects %}"
    "{% hit_count user %} {% hits user %} {% hits user days=1 %} {% visitors user %}"
)


class ByMeta:
    """A router as in Django's documentation: it reads ``model._meta``."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        for each in (model, hints.get("instance", model)):
            assert each._meta.app_label
        return None

    db_for_write = db_for_read


@pytest.fixture
def lazy(rule, settings) -> Article:
    settings.DATABASE_ROUTERS = [ByMeta()]
    rule("always", visitors=True)
    Article.objects.create(title="Tea")
    return cast(Article, SimpleLazyObject(Article.objects.get))


def today(lazy: Article) -> tuple[Article, datetime.date, datetime.date]:
    return lazy, day_of(), day_of()


def test_hits_are_recorded_and_read(lazy):
    assert record_hit(lazy, request_of(1)).total == 1
    assert [hit.total for hit in record_hits([lazy, lazy], request_of(2))] == [3, 3]

    assert get_hits(lazy) == lazy.hits == get_hits(lazy, days=1) == 3
    assert [*get_hits([lazy]).values()] == [3]
    assert [*hits_by_day(lazy, days=1).values()] == [3]
    assert [*visitors_by_day(lazy, days=1).values()] == [2]
    assert get_visitors(lazy) == 2


def test_hits_are_forgotten(lazy):
    record_hit(lazy)
    flush_hits()
    forget_hits(lazy)

    flush_hits()
    assert get_hits(lazy) == 0


def test_tags_count_and_show_them(lazy):
    context = Context({"user": lazy, "objects": [lazy], "request": request_of(1)})

    assert TAGS.render(context) == "1 1 1 1"


def test_read_numbers_are_kept_on_what_they_stand_for(lazy, django_assert_num_queries):
    record_hit(lazy, request_of(1))
    prefetch_hits([lazy], visitors_days=1)

    with django_assert_num_queries(0):
        context = Context({"user": lazy})
        shown = "{% load hitcount %}{% hits user %} {% visitors user %}"
        assert Template(shown).render(context) == "1 1"


def test_they_are_corrected_by_a_lazy_user(lazy, user):
    record_hit(lazy, amount=5)

    correction = correct_hits(
        lazy, -2, day=day_of(), reason="A bot", user=SimpleLazyObject(lambda: user)
    )

    assert (correction.made_by, get_hits(lazy)) == ("ann", 3)


def test_they_are_forgotten_when_it_is_deleted(lazy):
    record_hit(lazy, request_of(1))

    lazy.delete()

    flush_hits()
    assert not HitSlot.objects.exists()
