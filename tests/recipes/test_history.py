"""The recipe for django-simple-history: a hit makes no version, and a version has no hits."""

from __future__ import annotations

import pytest
from django.db import models
from django.http import HttpResponse
from django.template import Context, Template
from django.test.utils import isolate_apps
from simple_history.models import HistoricalRecords

from django_hitcount.counters.primary_keys import registered
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import HitCountMixin, HitSlot
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.recipes.docs import blocks, run
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)


class Chapter(HitCountMixin, models.Model):
    """The model of the recipe, without the column: tests of columns know all models with one."""

    title = models.CharField(max_length=200)
    # Without constraints: Django makes the tables of this app before those of users.
    history = HistoricalRecords(user_db_constraint=False)

    class Meta:
        app_label = "app"


@pytest.fixture
def chapter(buffer) -> Chapter:
    chapter = Chapter.objects.create(title="Tea")
    chapter.title = "Green tea"
    chapter.save()
    return chapter


@isolate_apps("tests.app")
def test_model_of_the_recipe_keeps_the_column_out_of_its_history():
    made = run("django-simple-history")["Chapter"]

    assert made in registered
    assert made.history.model not in registered
    names = {field.name for field in made._meta.fields}
    assert names - {field.name for field in made.history.model._meta.fields} == {"views"}
    assert made.check() == []


def test_hits_make_no_version(chapter):
    for visitor in range(3):
        record_hit(chapter, request_of(visitor))
    flush_hits()
    compact_hits()

    assert get_hits(chapter) == 3
    assert chapter.history.count() == 2


def test_page_of_a_version_counts_the_object(chapter):
    show = only_the_view()
    first = chapter.history.last()

    assert show(request_of(1), first.pk).content == b"Tea"
    assert get_hits(chapter) == 1


def only_the_view():
    """The view of the recipe, with the model of this file."""
    (code,) = blocks("django-simple-history", "python")
    view = code[code.index("def show_version") :]
    made = {
        "Chapter": Chapter,
        "render": lambda request, name, context: HttpResponse(context["version"].title),
    }
    exec(compile(view, "docs/apis.rst", "exec", dont_inherit=True), made)
    return made["show_version"]


def test_instance_of_a_version_is_not_saved(chapter):
    source = Template("{% load hitcount %}[{% hit_count old %}]")
    old = chapter.history.last().instance

    assert source.render(Context({"old": old, "request": request_of(1)})) == "[]"
    assert get_hits(chapter) == 0


def test_versions_outlive_the_hits_of_a_deleted_object(chapter):
    history = Chapter.history.filter(id=chapter.pk)
    record_hit(chapter)
    flush_hits()
    chapter.delete()
    flush_hits()

    assert history.count() == 3
    assert not HitSlot.objects.exists()
