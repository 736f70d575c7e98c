"""Which primary keys are counted, and that each has one text, in Python and in SQL."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pytest
from django.core.checks import run_checks
from django.utils.functional import SimpleLazyObject

from django_hitcount import deletion
from django_hitcount.counters import primary_keys
from django_hitcount.counters.keys import InvalidKey
from django_hitcount.counters.primary_keys import convert_key, find_by_texts
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountQuerySet
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.app import keys
from tests.app.models import Article, Cover, OldPhoto, Page, Photo

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)

COUNTED = {
    "another text in Python": lambda: keys.Hashed(id=keys.Disguised(77)),
    "a type of its own": lambda: keys.Sortable(id="01HF7YAT00QZ5Y4N9J8VQH7W3K"),
    "a column of its own": lambda: keys.Tweet(id=2**60),
    "a UUID with dashes": lambda: keys.Picture(id=uuid.uuid4()),
    "filled up with blanks": lambda: keys.Legacy(code="abc"),
    "a collation of its own": lambda: keys.Word(text="Äpfel"),
}

REFUSED = {
    "Decimal": lambda: keys.Priced(id=decimal.Decimal(1)),
    "datetime": lambda: keys.Moment(id=NOON),
    "bool": lambda: keys.Flag(id=True),
    "float": lambda: keys.Measure(id=1.0),
    "address": lambda: keys.Host(id="192.0.2.1"),
    "timedelta": lambda: keys.Span(id=datetime.timedelta(days=1)),
}

NO_OBJECT = [keys.Binary, keys.Lease, keys.Seat]


@pytest.mark.parametrize("name", COUNTED)
def test_key_has_one_text_when_made_when_read_and_in_sql(buffer, name):
    made = COUNTED[name]()
    made.save(force_insert=True)
    record_hit(made)
    read = type(made).objects.get()
    record_hit(read)
    flush_hits()
    queryset = HitCountQuerySet(type(made)).with_hits()

    assert (get_hits(made), get_hits(read)) == (2, 2)
    assert [*queryset.values_list("hits", flat=True)] == [2]


MORE = {
    "number": Article,
    "UUID": Photo,
    "UUID as digits": OldPhoto,
    "foreign key": lambda: Cover(photo=Photo.objects.create()),
    "text": lambda: Page(path="/a:b/%('"),
}


@pytest.mark.parametrize("name", [*COUNTED, *MORE])
def test_key_is_found_by_its_text(name):
    made = {**COUNTED, **MORE}[name]()
    made.save(force_insert=True)
    model = type(made)

    rows = find_by_texts(model, ["?", "0", convert_key(model, made.pk)], using="default")

    assert [convert_key(model, pk) for pk in rows.values_list("pk", flat=True)] == [
        convert_key(model, made.pk)
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_key_that_may_have_two_texts_is_refused(buffer, name):
    obj = REFUSED[name]()
    obj.save(force_insert=True)
    field = type(obj)._meta.pk

    with pytest.raises(InvalidKey, match=rf"{type(field).__name__}.*Use an integer, text or"):
        record_hit(obj)
    with pytest.raises(InvalidKey, match=type(obj).__name__):
        get_hits(type(obj).objects.get())
    with pytest.raises(InvalidKey, match=type(obj).__name__):
        list(HitCountQuerySet(type(obj)).with_hits())


def test_key_that_refers_to_a_refused_one_is_refused(buffer):
    lease = keys.Lease.objects.create(host=keys.Host.objects.create(id="192.0.2.1"))

    with pytest.raises(InvalidKey, match=r"tests\.app|app\.Lease.*GenericIPAddressField"):
        record_hit(lease)


def test_composite_key_is_refused(buffer):
    seat = keys.Seat.objects.create(row=1, number=2)

    with pytest.raises(InvalidKey, match=r"app\.Seat.*composite.*count hits of a related object"):
        record_hit(seat)


def test_object_with_a_refused_key_is_deleted_all_the_same(buffer, monkeypatch):
    monkeypatch.setattr(primary_keys, "registered", set())
    deletion.register(keys.Priced)
    keys.Priced.objects.create(id=1).delete()

    assert not keys.Priced.objects.exists()


@pytest.mark.django_db(databases="__all__")
@pytest.mark.parametrize("model", [*(type(REFUSED[name]()) for name in REFUSED), *NO_OBJECT])
def test_e005_a_model_to_be_counted_has_such_a_key(monkeypatch, model):
    monkeypatch.setattr(primary_keys, "registered", {model})

    messages = [message for message in run_checks() if message.id == "django_hitcount.E005"]

    assert [message.obj for message in messages] == [model]
    assert "cannot" in messages[0].msg.lower()
    assert messages[0].hint.startswith("Use an integer, text or UUID primary key")


@pytest.mark.django_db(databases="__all__")  # Django's checks of fields query each.
def test_other_keys_are_not_reported():
    assert not [message for message in run_checks() if message.id == "django_hitcount.E005"]


def test_lazy_object_counts_as_what_it_stands_for(buffer):
    """An object like request.user."""
    article = Article.objects.create(title="Tea")

    assert record_hit(SimpleLazyObject(lambda: article)).total == 1
    assert get_hits(article) == 1
