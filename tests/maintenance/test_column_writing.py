"""The columns of HitCountField: filled, kept up to date by compact_hits, and never by save()."""

from __future__ import annotations

from contextlib import contextmanager
from io import StringIO
from unittest import mock

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core import serializers
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.db.models import signals
from django.test.utils import CaptureQueriesContext

from django_hitcount.buffers import get_buffer
from django_hitcount.counters import primary_keys
from django_hitcount.db import total_columns
from django_hitcount.db.tables import HitSlot, StaleTotal
from django_hitcount.maintenance import column_writing
from django_hitcount.maintenance.compaction import compact, compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit, record_hits
from tests import children
from tests.app.models import Article, Dessert, Dish, Menu, Recipe, RecipeHistory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def counter_of_the_second_column(monkeypatch) -> None:
    """Not in the model: other tests run its checks with settings that do not declare it."""
    monkeypatch.setattr(Recipe._meta.get_field("downloads"), "counter", "downloads")


@pytest.fixture
def recipes() -> list[Recipe]:
    return [Recipe.objects.create(title=title) for title in ("Tea", "Cake", "Jam")]


def views(model: type = Recipe) -> list[int]:
    return [*model.objects.order_by("pk").values_list("views", flat=True)]


def fill(*labels: str, verbosity: int = 1) -> str:
    output = StringIO()
    call_command("fill_hit_counts", *labels, stdout=output, verbosity=verbosity)
    return output.getvalue()


class TestCompactHits:
    def test_writes_the_totals_that_have_changed(self, buffer, recipes):
        record_hits(recipes, amount=5)
        record_hit(recipes[1], amount=2)
        record_hit(recipes[1], counter="downloads", amount=9)
        if get_buffer().keeps_hits:
            compact_hits()
            assert views() == [0, 0, 0]  # They wait in the buffer.
            flush_hits()

        compact_hits()

        assert views() == [5, 7, 5]
        assert Recipe.objects.get(pk=recipes[1].pk).downloads == 9
        assert not StaleTotal.objects.exists()
        record_hit(recipes[0], amount=-1)
        flush_hits()
        compact_hits()
        assert views() == [4, 7, 5]

    @pytest.mark.parametrize("model", [Dish, Menu])
    def test_keys_of_other_types(self, model):
        paths = [{"path": path} for path in ("a:b", "c:b", "ä'%s")]
        objs = [model.objects.create(**(path if model is Menu else {})) for path in paths]
        for number, obj in enumerate(objs, start=1):
            record_hit(obj, amount=number)

        compact_hits()

        assert {obj.pk: obj.views for obj in model.objects.all()} == {
            obj.pk: number for number, obj in enumerate(objs, start=1)
        }

    def test_child_of_the_model(self):
        dessert = Dessert.objects.create(title="Ice")
        record_hit(dessert, amount=3)

        compact_hits()

        assert Dessert.objects.get().views == 3

    def test_changes_nothing_else_and_sends_no_signals(self, recipes):
        before = [*Recipe.objects.order_by("pk").values_list("pk", "title", "saved_at")]
        record_hits(recipes)
        sent = mock.Mock()
        for signal in (signals.pre_save, signals.post_save):
            signal.connect(sent, sender=Recipe)
        try:
            compact_hits()
        finally:
            for signal in (signals.pre_save, signals.post_save):
                signal.disconnect(sent, sender=Recipe)

        assert views() == [1, 1, 1]
        assert [*Recipe.objects.order_by("pk").values_list("pk", "title", "saved_at")] == before
        assert not sent.called

    def test_rows_that_are_up_to_date_are_not_written(self, recipes, monkeypatch):
        monkeypatch.setattr(column_writing, "_update", mock.Mock(return_value=1))
        record_hits(recipes)
        compact()
        Recipe.objects.filter(pk=recipes[0].pk).update(views=1)

        column_writing.write_stale_totals()

        first, second = column_writing._update.call_args_list
        assert {*first.args[2], *second.args[2]} == {recipes[1].pk, recipes[2].pk}

    def test_deleted_object_is_skipped(self, recipes):
        record_hits(recipes)
        compact()
        Recipe.objects.filter(pk=recipes[0].pk)._raw_delete("default")

        compact_hits()

        assert views() == [1, 1]
        assert not StaleTotal.objects.exists()

    def test_object_that_is_created_again_begins_with_0(self, recipes):
        """Also if its column was written before the counts of the old one were deleted."""
        record_hits(recipes, amount=5)
        compact()
        with mock.patch("django_hitcount.deletion.forget_now"):
            recipes[0].delete()
        Recipe(pk=recipes[1].pk - 1, title="Tea").save(force_insert=True)
        column_writing.write_stale_totals()
        assert views() == [5, 5, 5]

        compact_hits()
        compact_hits()

        assert views() == [0, 5, 5]

    def test_costs_a_fold_nothing_if_no_model_has_a_column(self, recipes, monkeypatch):
        monkeypatch.setattr(total_columns, "total_columns", dict)
        record_hits(recipes)
        compact()

        assert not StaleTotal.objects.exists()

    def test_other_counters_are_not_marked(self, recipes):
        record_hit(Article.objects.create(title="Tea"))
        compact()

        assert not StaleTotal.objects.exists()

    def test_pieces(self, recipes, monkeypatch):
        monkeypatch.setattr(column_writing, "OBJECTS_AT_A_TIME", 2)
        record_hits(recipes)
        compact_hits()
        assert views() == [1, 1, 1]

    def test_process_that_dies_before_the_rows_are_deleted(self, recipes):
        record_hits(recipes)
        compact()

        def die() -> None:
            with mock.patch.object(column_writing, "Written", children.die):
                column_writing.write_stale_totals()

        assert children.run(die) == -9
        assert StaleTotal.objects.count() == 3
        compact_hits()
        assert views() == [1, 1, 1]
        assert not StaleTotal.objects.exists()

    def test_model_that_fails_keeps_no_other_from_being_written(self, recipes):
        picture = Dish.objects.create()
        record_hits([*recipes, picture])
        compact()
        write = column_writing.write_totals

        def fail(model, *args):
            if model is Recipe:
                raise OperationalError("no such column")
            return write(model, *args)

        with (
            mock.patch.object(column_writing, "write_totals", fail),
            pytest.raises(ExceptionGroup) as raised,
        ):
            column_writing.write_stale_totals()

        assert raised.value.exceptions[0].__notes__ == ["while writing the totals of app.Recipe"]
        assert views(Dish) == [1]
        assert StaleTotal.objects.count() == 3

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
    def test_row_that_the_site_has_locked_is_left_to_the_next_run(self, recipes):
        record_hits(recipes)
        compact()
        with locked(recipes[1]):
            assert children.run(column_writing.write_stale_totals) == 0
            assert views() == [1, 0, 1]
            assert [row.object_id for row in StaleTotal.objects.all()] == [str(recipes[1].pk)]

        compact_hits()
        assert views() == [1, 1, 1]

    def test_sums_are_read_under_the_locks(self, recipes):
        """Or else two processes could write an older sum over a newer one."""
        record_hits(recipes)
        compact()
        read = column_writing.read_sums

        def read_in_transaction(*args, **kwargs):
            assert connection.in_atomic_block
            assert locking.called
            return read(*args, **kwargs)

        with (
            mock.patch.object(column_writing, "_lock", wraps=column_writing._lock) as locking,
            mock.patch.object(column_writing, "read_sums", read_in_transaction),
        ):
            column_writing.write_stale_totals()
        assert views() == [1, 1, 1]


@contextmanager
def locked(recipe: Recipe):
    other = connection.copy()
    other.set_autocommit(False)
    try:
        with other.cursor() as cursor:
            table = Recipe._meta.db_table
            cursor.execute(f"SELECT id FROM {table} WHERE id = %s FOR UPDATE", [recipe.pk])
            yield
        other.rollback()
    finally:
        other.close()


class TestFill:
    def test_fills_all_models_and_repairs(self, recipes):
        picture = Dish.objects.create()
        record_hits([*recipes, picture], amount=4)
        Recipe.objects.filter(pk=recipes[0].pk).update(views=99, downloads=1)

        with mock.patch.object(column_writing, "OBJECTS_AT_A_TIME", 2):
            assert "app.Recipe: 3 objects, 4 totals changed.\n" in fill()

        assert views() == [4, 4, 4]
        assert views(Dish) == [4]
        assert Recipe.objects.get(pk=recipes[0].pk).downloads == 0
        assert fill("app.Recipe") == "app.Recipe: 3 objects, 0 totals changed.\n"

    def test_some_models(self, recipes):
        record_hits([*recipes, Dish.objects.create()])
        fill("app.Dish")
        assert (views(), views(Dish)) == ([0, 0, 0], [1])

    def test_one_object(self):
        record_hit(Dish.objects.create())
        assert fill("app.Dish") == "app.Dish: 1 object, 1 total changed.\n"

    def test_nothing_is_printed_without_verbosity(self, recipes):
        record_hits(recipes)
        assert fill(verbosity=0) == ""
        assert views() == [1, 1, 1]

    @pytest.mark.parametrize("label", ["app.recipe", "app.RECIPE"])
    def test_case_of_a_name_does_not_matter(self, recipes, label):
        assert fill(label) == "app.Recipe: 3 objects, 0 totals changed.\n"

    @pytest.mark.parametrize("label", ["app.Recip", "Recipe", "app.Article"])
    def test_wrong_model(self, label):
        with pytest.raises(CommandError) as raised:
            fill(label)
        assert str(raised.value) == (
            f"Invalid model: {label!r}. Counted models with a HitCountField: "
            "app.Dish, app.Menu, app.Recipe."
        )

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
    def test_locked_objects_are_left_to_compact_hits(self, recipes):
        record_hits(recipes)
        with locked(recipes[1]):
            assert "1 object was locked and is left to the next compact_hits.\n" in fill()
        compact_hits()
        assert views() == [1, 1, 1]


class TestSaving:
    @pytest.fixture
    def recipe(self, recipes) -> Recipe:
        """It was read before its column was written."""
        recipe = Recipe.objects.get(pk=recipes[0].pk)
        Recipe.objects.filter(pk=recipe.pk).update(views=7)
        return recipe

    def value(self, recipe: Recipe) -> int:
        return Recipe.objects.values_list("views", flat=True).get(pk=recipe.pk)

    def test_save_keeps_the_column(self, recipe):
        recipe.views = 100
        recipe.title = "Coffee"
        recipe.save()
        recipe.save(update_fields=["views", "title"])
        recipe.save(force_update=True)
        assert self.value(recipe) == 7
        assert Recipe.objects.get(pk=recipe.pk).title == "Coffee"

    def test_child_that_is_saved_keeps_the_column_of_its_parent(self):
        dessert = Dessert.objects.create(title="Ice")
        Recipe.objects.update(views=7)
        dessert.sweetness = 9
        dessert.save()
        assert self.value(dessert) == 7

    def test_update_or_create_and_deferred_fields(self, recipe):
        Recipe.objects.update_or_create(pk=recipe.pk, defaults={"title": "Coffee"})
        Recipe.objects.only("title").get(pk=recipe.pk).save()
        Recipe.objects.bulk_update([recipe], ["title"])
        assert self.value(recipe) == 7

    @pytest.mark.parametrize("key", [None, 999])
    def test_copy_begins_with_0(self, recipe, key):
        recipe.refresh_from_db()
        recipe.pk = key
        recipe.save()
        assert (recipe.views, self.value(recipe)) == (0, 0)

    def test_new_objects_begin_with_0(self, recipe):
        created = Recipe.objects.create(title="a", views=5)
        [bulk] = Recipe.objects.bulk_create([Recipe(pk=5000, title="b", views=5)])
        assert [self.value(created), self.value(bulk)] == [0, 0]

    def test_fixture_keeps_its_value(self, recipe):
        recipe.refresh_from_db()
        text = serializers.serialize("json", [recipe])
        Recipe.objects.all().delete()
        for loaded in serializers.deserialize("json", text):
            loaded.save()
        assert self.value(recipe) == 7

    def test_rolled_back_save(self, recipe):
        with transaction.atomic():
            recipe.save()
            transaction.set_rollback(True)
        assert self.value(recipe) == 7


class TestCopiedColumns:
    """History apps copy the columns of a model into another one, whose objects nobody counts."""

    @pytest.fixture
    def old(self, recipes) -> RecipeHistory:
        record_hits(recipes)
        old = RecipeHistory.objects.create(id=recipes[0].pk, title="Tea")
        RecipeHistory.objects.update(views=5, downloads=6)
        return old

    def values(self, old: RecipeHistory) -> tuple[int, int]:
        old.refresh_from_db()
        return old.views, old.downloads

    def test_fill_hit_totals_leaves_them(self, old):
        assert "History" not in fill()
        assert self.values(old) == (5, 6)
        with pytest.raises(CommandError, match="Counted models"):
            fill("app.RecipeHistory")

    def test_compact_hits_asks_nothing_about_them(self, old):
        ContentType.objects.filter(model="recipehistory").delete()
        with CaptureQueriesContext(connection) as queries:
            compact_hits()

        assert views() == [1, 1, 1]
        assert self.values(old) == (5, 6)
        assert not [query for query in queries.captured_queries if "history" in query["sql"]]

    def test_they_are_written_once_their_model_is_connected(self, old, monkeypatch):
        monkeypatch.setattr(primary_keys, "registered", {Recipe, RecipeHistory})
        assert "app.RecipeHistory: 1 object, 2 totals changed." in fill()
        assert self.values(old) == (0, 0)


def test_models_with_columns():
    found = total_columns.total_columns()
    assert [field.name for field in found[Recipe]] == ["views", "downloads"]
    assert {*found} == {Recipe, Dish, Menu}
    assert HitSlot not in found
