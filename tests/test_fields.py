"""HitCountField: its options, its migrations, its checks, and where it is shown."""

from __future__ import annotations

import copy

import pytest
from django.core.exceptions import FieldError
from django.db import models
from django.db.migrations.writer import MigrationWriter
from django.forms import modelform_factory
from django.test.utils import isolate_apps

from django_hitcount.db.total_columns import total_columns
from django_hitcount.fields import HitCountField
from django_hitcount.models import HitCountMixin
from tests.app.models import Article, Event, Recipe


class Downloads(HitCountField):
    pass


def ids(model: type[models.Model]) -> list[str]:
    return [message.id for message in model.check() if "hitcount" in str(message.id)]


def test_options():
    field = Recipe._meta.get_field("views")
    assert (field.counter, field.default, field.editable, field.db_index) == (
        "views",
        0,
        False,
        True,
    )
    assert not Recipe._meta.get_field("downloads").db_index


@pytest.mark.parametrize(
    ("field", "kwargs"),
    [
        (HitCountField(), {}),
        (HitCountField(counter="downloads"), {"counter": "downloads"}),
        (HitCountField("seen", db_index=False), {"verbose_name": "seen", "db_index": False}),
        (HitCountField(default=7, editable=True), {}),
    ],
)
def test_migrations_name_the_public_path_and_what_differs(field, kwargs):
    _, path, args, found = field.deconstruct()
    assert (path, args, found) == ("django_hitcount.fields.HitCountField", [], kwargs)
    for other in (field.clone(), copy.deepcopy(field)):
        assert other.deconstruct() == field.deconstruct()
        assert (other.default, other.editable) == (0, False)


def test_migration_file():
    text, imports = MigrationWriter.serialize(HitCountField(counter="downloads"))
    assert text == "django_hitcount.fields.HitCountField(counter='downloads')"
    assert imports == {"import django_hitcount.fields"}


def test_subclass_keeps_its_own_path():
    assert Downloads().deconstruct()[1] == "tests.test_fields.Downloads"


def test_counter_is_no_change_of_the_table():
    assert "counter" in HitCountField().non_db_attrs


def test_is_in_no_form():
    assert "views" not in modelform_factory(Recipe, fields="__all__").base_fields
    with pytest.raises(FieldError):
        modelform_factory(Recipe, fields=["views"])


class TestChecks:
    def test_correct_models(self):
        assert [ids(model) for model in total_columns()] == [[], [], []]

    @isolate_apps("tests.app")
    def test_unknown_counter(self):
        class Song(models.Model):
            plays = HitCountField(counter="plays")

            class Meta:
                app_label = "app"

        [error] = Song.check()
        assert error.id == "django_hitcount.E007"
        assert "Unknown counter 'plays'" in error.msg
        assert error.obj is Song._meta.get_field("plays")

    @isolate_apps("tests.app")
    def test_child_that_counts_as_its_parent(self):
        class Story(Article):
            views = HitCountField()

            class Meta:
                app_label = "app"

        assert "django_hitcount.E008" in ids(Story)

    @isolate_apps("tests.app")
    def test_child_with_its_own_key(self):
        class Pass(Event):
            number = models.AutoField(primary_key=True)
            event = models.OneToOneField(Event, parent_link=True, on_delete=models.CASCADE)
            views = HitCountField()

            class Meta:
                app_label = "app"

        assert ids(Pass) == []

    @isolate_apps("tests.app")
    def test_key_that_cannot_be_counted(self):
        class Price(models.Model):
            amount = models.DecimalField(primary_key=True, max_digits=5, decimal_places=2)
            views = HitCountField()

            class Meta:
                app_label = "app"

        assert ids(Price) == ["django_hitcount.E005"]

    @isolate_apps("tests.app")
    def test_name_that_hides_an_attribute_of_the_mixin(self):
        class Counted(models.Model):
            hits = HitCountField()

            class Meta:
                abstract = True
                app_label = "app"

        class Song(HitCountMixin, Counted):
            get_visitors = HitCountField()
            plays = HitCountField()

            class Meta:
                app_label = "app"

        class Single(Song):
            class Meta:
                app_label = "app"

        class LiveSong(Song):
            class Meta:
                app_label = "app"
                proxy = True

        errors = [message for message in Song.check() if "hitcount" in message.id]
        assert [error.id for error in errors] == ["django_hitcount.E010"] * 2
        assert {error.obj.name for error in errors} == {"hits", "get_visitors"}
        assert "'hits' of app.Song hides HitCountMixin.hits" in str(errors)
        assert ids(Single) == ids(LiveSong) == []

    @isolate_apps("tests.app")
    def test_relation_that_hides_an_attribute_of_the_mixin(self):
        class Song(HitCountMixin, models.Model):
            class Meta:
                app_label = "app"

        class Chart(HitCountMixin, models.Model):
            hits = models.ManyToManyField(Song, related_name="get_hits")
            first = models.ForeignKey(Song, models.CASCADE, related_name="hits")
            hidden = models.ForeignKey(Song, models.CASCADE, related_name="+")

            class Meta:
                app_label = "app"

        class LiveSong(Song):
            class Meta:
                app_label = "app"
                proxy = True

        found = {model: ids(model) for model in (Song, Chart, LiveSong)}
        wrong = "django_hitcount.E010"
        assert found == {Song: [wrong, wrong], Chart: [wrong], LiveSong: []}
        assert "'hits' of app.Chart hides HitCountMixin.hits" in str(Chart.check())

    @isolate_apps("tests.app")
    def test_same_name_without_the_mixin(self):
        class Song(models.Model):
            hits = HitCountField()

            class Meta:
                app_label = "app"

        assert ids(Song) == []

    @isolate_apps("tests.app")
    def test_wrong_settings_are_reported_by_their_own_check(self, settings):
        class Song(models.Model):
            plays = HitCountField(counter="plays")

            class Meta:
                app_label = "app"

        settings.HITCOUNT = {"SLOTS": "many"}
        assert ids(Song) == []
