"""What editors do in Wagtail's admin counts nothing, and breaks nothing."""

from __future__ import annotations

import pytest
from django.urls import reverse

from django_hitcount.db.tables import HitSlot
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hit
from tests.wagtail.bakery.models import Ingredient, RecipePage
from tests.wagtail.cooks.models import Cook
from tests.wagtail.test_pages import shown

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {
    "title": "Bread of today",
    "slug": "bread",
    "minutes": "20",
    "ingredient": "",
    "goes_with": "",
    "comments-TOTAL_FORMS": "0",
    "comments-INITIAL_FORMS": "0",
}


@pytest.fixture
def flour():
    return Ingredient.objects.create(name="Flour")


def preview(editor, url, data):
    assert editor.post(url, data).json()["is_valid"]
    return editor.get(url)


def test_page_is_made_published_and_counted(buffer, home, editor, visitor):
    url = reverse("wagtailadmin_pages:add", args=("bakery", "recipepage", home.pk))

    response = editor.post(url, {**FORM, "action-publish": "1"})

    assert response.status_code == 302
    assert shown(visitor.get("/bread/")) == "1"


def test_preview_of_a_new_page_is_shown_and_counts_nothing(buffer, home, editor):
    url = reverse("wagtailadmin_pages:preview_on_add", args=("bakery", "recipepage", home.pk))

    assert shown(preview(editor, url, FORM)) == ""
    assert not RecipePage.objects.exists()
    flush_hits()
    assert not HitSlot.objects.exists()


def test_preview_of_a_page_shows_the_total_and_counts_nothing(buffer, recipe, editor, visitor):
    visitor.get("/bread/")
    url = reverse("wagtailadmin_pages:preview_on_edit", args=(recipe.pk,))

    assert shown(preview(editor, url, FORM)) == "1"
    assert recipe.hits == 1


def test_draft_is_shown_and_counts_nothing(buffer, recipe, editor, visitor):
    visitor.get("/bread/")
    recipe.title = "Rye bread"
    recipe.save_revision()
    url = reverse("wagtailadmin_pages:view_draft", args=(recipe.pk,))

    response = editor.get(url)

    assert b"Rye bread" in response.content
    assert shown(response) == "1"
    assert recipe.hits == 1


def test_preview_of_a_snippet_counts_nothing(buffer, flour, editor):
    data = {"name": "Rye flour"}
    on_add = reverse("wagtailsnippets_bakery_ingredient:preview_on_add")
    on_edit = reverse("wagtailsnippets_bakery_ingredient:preview_on_edit", args=(flour.pk,))

    assert shown(preview(editor, on_add, data)) == ""
    assert shown(preview(editor, on_edit, data)) == "0"
    assert flour.hits == 0


def test_choosers_list_pages_and_snippets(recipe, flour, editor):
    pages = editor.get(reverse("wagtailadmin_choose_page_child", args=(recipe.get_parent().pk,)))
    typed = editor.get(
        reverse("wagtailadmin_choose_page"), {"page_type": "bakery.recipepage", "q": "Bread"}
    )
    snippets = editor.get(reverse("wagtailsnippetchoosers_bakery_ingredient:choose"))

    assert "Bread" in pages.json()["html"]
    assert typed.status_code == 200
    assert "Flour" in snippets.json()["html"]


def test_chosen_page_and_snippet_are_saved(buffer, recipe, flour, home, editor, visitor):
    url = reverse("wagtailadmin_pages:edit", args=(recipe.pk,))
    chosen = {"ingredient": str(flour.pk), "goes_with": str(home.pk), "action-publish": "1"}

    assert editor.post(url, {**FORM, **chosen}).status_code == 302

    assert b"Flour: 1" in visitor.get("/bread/").content
    assert RecipePage.objects.get().goes_with.specific == home


@pytest.mark.parametrize("name", ["wagtailadmin_explore", "wagtailadmin_pages:edit"])
def test_lists_and_forms_are_shown(recipe, editor, name):
    assert editor.get(reverse(name, args=(recipe.pk,))).status_code == 200


def test_copy_and_move_in_the_admin(buffer, home, recipe, editor, visitor):
    visitor.get("/bread/")
    copy = reverse("wagtailadmin_pages:copy", args=(recipe.pk,))
    data = {"new_title": "Loaf", "new_slug": "loaf", "new_parent_page": str(home.pk)}
    assert editor.post(copy, {**data, "publish_copies": "on"}).status_code == 302
    loaf = RecipePage.objects.get(slug="loaf")
    move = reverse("wagtailadmin_pages:move_confirm", args=(recipe.pk, loaf.pk))
    assert editor.post(move).status_code == 302

    assert shown(visitor.get("/loaf/bread/")) == "2"
    assert loaf.hits == 0


@pytest.mark.parametrize(
    ("kind", "view"),
    [
        ("recipe", "wagtailadmin_pages:delete"),
        ("flour", "wagtailsnippets_bakery_ingredient:delete"),
    ],
)
def test_page_or_snippet_deleted_in_the_admin_loses_its_counts(buffer, editor, request, kind, view):
    obj = request.getfixturevalue(kind)
    record_hit(obj)
    flush_hits()

    response = editor.post(reverse(view, args=(obj.pk,)))

    assert response.status_code == 302
    flush_hits()
    assert not HitSlot.objects.exists()


def test_user_with_the_mixin_logs_in_and_is_counted(buffer, editor):
    cook = Cook.objects.get()

    assert Cook.objects.create_user("guest").has_usable_password() is False
    assert Cook.objects.get_by_natural_key("cook") == cook
    assert editor.get(reverse("wagtailusers_users:index")).status_code == 200
    record_hit(cook)
    assert get_hits(cook) == cook.hits == 1


def test_report_leads_to_the_statistics_of_a_page_of_any_type(buffer, recipe, editor):
    record_hit(recipe)
    flush_hits()
    report = reverse("admin:django_hitcount_hitslot_changelist")
    statistics = reverse("admin:wagtailcore_page_hit_statistics", args=(recipe.pk,))

    assert statistics in editor.get(report, {"period": "today"}).content.decode()
    page = editor.get(statistics)
    assert (page.status_code, "Bread" in page.content.decode()) == (200, True)
