"""What visitors of a Wagtail site see, and what happens to counts when pages are edited."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from wagtail.models import Page

from django_hitcount.counters.primary_keys import counted_model
from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import with_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.wagtail.bakery.models import HomePage, RecipePage, StoryPage, TipPage

pytestmark = pytest.mark.django_db(transaction=True)


def shown(response) -> str:
    """The total that a page shows in brackets."""
    assert response.status_code == 200
    return re.search(r"\[(\d*)\]", response.content.decode()).group(1)


def test_nothing_is_left_to_migrate_or_to_check():
    call_command("makemigrations", check=True, dry_run=True, stdout=StringIO())

    assert not run_checks()


@pytest.mark.parametrize("model", [RecipePage, StoryPage, TipPage])
def test_page_counts_its_views(buffer, home, visitor, model):
    page = home.add_child(instance=model(title="Bread", slug="bread"))

    assert [shown(visitor.get("/bread/")) for _ in range(2)] == ["1", "2"]
    assert shown(Client().get("/bread/")) == "2"
    assert get_hits(Page.objects.get(pk=page.pk)) == page.hits == 2


def test_page_without_the_mixin_counts_too(buffer, home, visitor):
    assert b"<p>1 views</p>" in visitor.get("/").content
    assert get_hits(home) == get_hits(Page.objects.get(pk=home.pk)) == 1


@pytest.mark.parametrize("model", [HomePage, RecipePage, StoryPage, TipPage])
def test_page_of_any_type_counts_as_page(model):
    assert counted_model(model) is Page


def test_managers_are_those_of_the_project(recipe):
    assert [page.title for page in RecipePage.objects.live().quick()] == []
    for model in (StoryPage, TipPage):
        assert model.objects.live().public().count() == 0
    assert with_hits(RecipePage.objects.live()).get().hits == 0


def test_draft_is_not_found_and_counts_nothing(buffer, home, visitor):
    draft = home.add_child(instance=RecipePage(title="Soup", slug="soup", live=False))

    assert visitor.get("/soup/").status_code == 404
    assert draft.hits == 0


def test_listing_is_ordered_by_hits_and_shows_parents_and_children_alike(buffer, home, visitor):
    pages = [home.add_child(instance=RecipePage(title=title)) for title in ("Bread", "Cake", "Pie")]
    for page, amount in zip(pages, (1, 3, 2), strict=True):
        record_hit(page, amount=amount)
    flush_hits()

    html = visitor.get("/").content.decode()

    assert re.findall(r"<li><a [^>]*>(\w+)</a>: (\d+)", html) == [
        ("Cake", "3"),
        ("Pie", "2"),
        ("Bread", "1"),
    ]
    assert re.findall(r"<li>(\w+): (\d+)", html) == [("Bread", "1"), ("Cake", "3"), ("Pie", "2")]


def test_listing_costs_the_same_for_any_number_of_pages(buffer, home, visitor):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as context:
            visitor.get("/")
        return len(context)

    home.add_child(instance=RecipePage(title="Bread"))
    visitor.get("/")
    few = queries()
    for title in ("Cake", "Pie", "Soup", "Tart"):
        home.add_child(instance=RecipePage(title=title))
    visitor.get("/")

    assert queries() == few


def test_specific_pages_carry_exact_totals_too(buffer, home, recipe):
    story = home.add_child(instance=StoryPage(title="Story"))
    record_hit(recipe, amount=2)
    flush_hits()
    record_hit(recipe)
    record_hit(story)

    pages = with_hits(Page.objects.child_of(home).specific())

    assert {page: page.hits for page in pages} == {recipe: 3, story: 1}
    assert {page: page.hits for page in pages} == {recipe: 3, story: 1}


def test_new_revision_keeps_the_counts(buffer, recipe, visitor):
    shown(visitor.get("/bread/"))
    recipe.title = "Rye bread"
    revision = recipe.save_revision()

    assert revision.as_object().hits == 1
    revision.publish()
    assert shown(visitor.get("/bread/")) == "2"


def test_unpublished_page_keeps_its_counts(buffer, recipe, visitor):
    visitor.get("/bread/")
    recipe.unpublish()

    assert visitor.get("/bread/").status_code == 404
    assert recipe.hits == 1


def test_copy_begins_at_0(buffer, home, recipe, visitor):
    visitor.get("/bread/")
    copy = recipe.copy(update_attrs={"slug": "loaf", "title": "Loaf"})
    alias = recipe.create_alias(update_slug="alias")

    assert get_hits([recipe, copy, alias]) == {recipe: 1, copy: 0, alias: 0}
    assert shown(visitor.get("/loaf/")) == "1"


def test_page_that_moves_keeps_its_counts(buffer, home, recipe, visitor):
    visitor.get("/bread/")
    story = home.add_child(instance=StoryPage(title="Story", slug="story"))
    recipe.move(story, pos="last-child")

    assert shown(visitor.get("/story/bread/")) == "2"


DELETIONS = {
    "page": lambda pk: Page.objects.get(pk=pk).delete(),
    "specific page": lambda pk: RecipePage.objects.get(pk=pk).delete(),
    "queryset": lambda pk: Page.objects.filter(pk=pk).delete(),
    "queryset of a type": lambda pk: RecipePage.objects.filter(pk=pk).delete(),
}


@pytest.mark.parametrize("way", DELETIONS)
def test_deleted_page_and_those_below_lose_their_counts(buffer, home, recipe, way):
    below = recipe.add_child(instance=StoryPage(title="Story"))
    kept = home.add_child(instance=StoryPage(title="Kept"))
    for page in (recipe, below, kept):
        record_hit(page)
    flush_hits()
    record_hit(recipe)

    DELETIONS[way](recipe.pk)
    flush_hits()

    assert {row.object_id for row in HitSlot.objects.all()} == {str(kept.pk)}
