"""The columns of HitCountField when the counts are in another database than the objects."""

from __future__ import annotations

import signal
from io import StringIO
from unittest import mock

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, connections, transaction

from django_hitcount.db.tables import HitSlot, StaleTotal
from django_hitcount.maintenance import column_writing
from django_hitcount.maintenance.compaction import compact, compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hits
from tests import children
from tests.app.models import Dish, Recipe

CAN_LOCK_ROWS = connection.features.has_select_for_update

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "elsewhere"])


@pytest.fixture(autouse=True)
def recipes(settings) -> list[Recipe]:
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    return [Recipe.objects.create(title=title) for title in ("Tea", "Cake", "Jam")]


def views(database: str = "default", model: type = Recipe) -> list[int]:
    rows = model.objects.using(database).order_by("pk")
    return [*rows.values_list("views", flat=True)]


def is_up_to_date() -> bool:
    return not StaleTotal.objects.using("elsewhere").exists()


def test_columns_are_written_where_the_objects_are(buffer, recipes):
    """Not those of objects with the same key that are in the database of the counts."""
    recipes[0].save(using="elsewhere", force_insert=True)
    dish = Dish.objects.create()
    record_hits([*recipes, dish], amount=5)
    flush_hits()

    compact_hits()

    assert views() == [5, 5, 5]
    assert views("elsewhere") == [0]
    assert views(model=Dish) == [5]
    assert is_up_to_date()
    assert not HitSlot.objects.using("default").exists()


def test_command_fills_them():
    dishes = [Dish.objects.create() for _ in range(3)]
    record_hits(dishes[:2], amount=4)
    Dish.objects.filter(pk=dishes[2].pk).update(views=9)
    output = StringIO()

    call_command("fill_hit_counts", "app.Dish", stdout=output)

    assert output.getvalue() == "app.Dish: 3 objects, 3 totals changed.\n"
    assert sorted(views(model=Dish)) == [0, 4, 4]


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
def test_process_that_dies_at_the_commit(recipes, monkeypatch, when, written):
    """The marks are in the other database, so they stay, and the next run writes again."""
    record_hits(recipes)
    compact()
    wrapper = type(connections["default"])
    commit = wrapper._commit

    def die(self):
        if when == "after":
            commit(self)
        children.die()

    with monkeypatch.context() as patch:
        patch.setattr(wrapper, "_commit", die)
        assert children.run(column_writing.write_stale_totals) == -signal.SIGKILL
    assert views() == [written] * 3
    assert not is_up_to_date()

    compact_hits()
    assert views() == [1, 1, 1]
    assert is_up_to_date()


@pytest.mark.parametrize("away", ["read_sums", "_update"])
def test_database_that_is_away(recipes, monkeypatch, away):
    """That of the counts, or that of the objects."""
    monkeypatch.setattr(column_writing, "PATIENCE_SECONDS", 0)
    record_hits(recipes)

    with (
        mock.patch.object(column_writing, away, side_effect=OperationalError("away")),
        pytest.raises(ExceptionGroup),
    ):
        compact_hits()
    assert views() == [0, 0, 0]

    compact_hits()
    assert views() == [1, 1, 1]
    assert is_up_to_date()


@pytest.mark.skipif(not CAN_LOCK_ROWS, reason="SQLite locks the file, not rows")
def test_locked_object_is_marked_in_the_database_of_the_counts(recipes):
    record_hits(recipes)
    with transaction.atomic():
        Recipe.objects.select_for_update().get(pk=recipes[1].pk)
        assert children.run(lambda: call_command("fill_hit_counts", "app.Recipe")) == 0
        assert views() == [1, 0, 1]
        marked = {row.object_id for row in StaleTotal.objects.using("elsewhere")}
        assert marked == {str(recipes[1].pk)}

    compact_hits()
    assert views() == [1, 1, 1]
