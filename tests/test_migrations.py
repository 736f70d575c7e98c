from __future__ import annotations

import datetime

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Q, Sum

from django_hitcount.counters.keys import CounterKey
from django_hitcount.db import slots
from django_hitcount.db.tables import DailyHitSlot, HitSlot
from django_hitcount.db.tables.hits import is_uncompacted
from django_hitcount.maintenance import compaction
from tests.app.models import Article


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["AutoField", "BigAutoField", "SmallAutoField"])
def test_models_and_migrations_agree_whatever_the_project_sets(settings, field):
    settings.DEFAULT_AUTO_FIELD = f"django.db.models.{field}"

    call_command("makemigrations", "django_hitcount", check=True, dry_run=True, verbosity=0)


def test_migrations_are_one_line_of_named_steps():
    names = [
        name for app, name in MigrationLoader(None).disk_migrations if app == "django_hitcount"
    ]

    assert len({name[:4] for name in names}) == len(names)
    assert not [name for name in names if "auto" in name]


@pytest.mark.django_db(transaction=True)
def test_migrations_run_back_and_forth():
    call_command("migrate", "django_hitcount", "zero", verbosity=0)
    assert "django_hitcount_hitslot" not in connection.introspection.table_names()
    call_command("migrate", "django_hitcount", verbosity=0)
    assert "django_hitcount_hitslot" in connection.introspection.table_names()


@pytest.mark.django_db(transaction=True)
class TestIndexes:
    @pytest.fixture(autouse=True)
    def rows(self):
        """Many counters, few of them not compacted."""
        self.model = ContentType.objects.get_for_model(Article).pk
        self.add_rows(range(3000), one_not_compacted_of=100)

    def add_rows(self, numbers, *, one_not_compacted_of):
        for table in (HitSlot, DailyHitSlot):
            days = [datetime.date(2026, 1, 1)] if table is DailyHitSlot else []
            rows = [
                (self.model, str(n), "views", *days, 0 if n % one_not_compacted_of else 1, n)
                for n in numbers
            ]
            slots.add_to_slots(table, rows)
        with connection.cursor() as cursor:
            if connection.vendor == "mysql":
                cursor.execute(
                    "ANALYZE TABLE django_hitcount_hitslot, django_hitcount_dailyhitslot"
                )
            else:
                cursor.execute("ANALYZE")

    def test_total_is_read_by_the_unique_key(self):
        key = CounterKey(self.model, "7", "views")
        plan = (
            HitSlot.objects.filter(slots.match_counters([key]))
            .values("counter")
            .annotate(Sum("hits"))
        )

        name = "hitcount_hitslot_key"
        if connection.vendor == "sqlite":  # It gives the index of a constraint its own name.
            name = "hitslot_1 (content_type_id=? AND object_id=? AND counter=?)"
        assert name in plan.explain()

    @pytest.mark.parametrize("is_compacted", [True, False])
    @pytest.mark.parametrize(
        ("table", "index"),
        [(HitSlot, "hitcount_hitslot_most"), (DailyHitSlot, "hitcount_daily_most")],
    )
    def test_most_viewed_walks_an_index(self, table, index, is_compacted):
        # MariaDB sorts a few rows, which it finds by another index.
        self.add_rows(range(3000, 6000), one_not_compacted_of=1)
        most = table.objects.filter(
            content_type=self.model, counter="views", is_compacted=is_compacted
        )
        if table is DailyHitSlot:
            most = most.filter(day="2026-01-01")

        plan = most.order_by("-hits")[:10].explain()
        assert index in plan
        assert "sort" not in plan.lower().replace("filesort: 0", "")

    def test_the_database_knows_which_rows_are_compacted(self):
        for table in (HitSlot, DailyHitSlot):
            assert table.objects.filter(is_compacted=False).count() == 30
            assert not table.objects.filter(is_compacted=(Q(slot__gt=0))).exists()

    @pytest.mark.parametrize(
        ("table", "index"),
        [(HitSlot, "hitcount_hitslot_compact"), (DailyHitSlot, "hitcount_daily_compact")],
    )
    def test_compaction_finds_its_rows_by_index(self, table, index):
        # PostgreSQL sorts a few rows, which it finds by another index.
        self.add_rows(range(3000, 6000), one_not_compacted_of=1)
        rows = table.objects.filter(is_uncompacted(connection), pk__lte=10**9)

        assert index in rows.order_by(*table.KEY, "slot").values_list("pk")[:100].explain()

    def test_the_highest_slot_is_found_by_index(self):
        # Databases read a few rows, which they find by another index.
        self.add_rows(range(3000, 6000), one_not_compacted_of=1)
        rows = HitSlot.objects.filter(is_uncompacted(connection))

        plan = rows.order_by("-slot").values_list("slot")[:1].explain()
        assert "hitcount_hitslot_slot" in plan
        assert "sort" not in plan.lower().replace("filesort: 0", "")

    @pytest.mark.parametrize("table", [HitSlot, DailyHitSlot])
    def test_an_index_has_the_hits_where_it_is_not_partial(self, table):
        """The sum of an object reads it alone, unless the index is partial."""
        (index,) = (index for index in table._meta.indexes if index.name.endswith("_compact"))
        with connection.cursor() as cursor:
            meta = connection.introspection.get_constraints(cursor, table._meta.db_table)
        columns = ["is_compacted", *table.KEY, "slot", "hits"]
        if connection.features.supports_partial_indexes:
            columns = [*table.KEY, "slot"]
        assert meta[index.name]["columns"] == columns

    def test_an_index_without_hits_has_its_fields_alone(self):
        with connection.cursor() as cursor:
            meta = connection.introspection.get_constraints(cursor, HitSlot._meta.db_table)
        columns = ["is_compacted", "slot"]
        if connection.features.supports_partial_indexes:
            columns = ["slot"]
        assert meta["hitcount_hitslot_slot"]["columns"] == columns

    def test_partial_where_the_database_can(self):
        with connection.cursor() as cursor:
            constraints = connection.introspection.get_constraints(
                cursor, "django_hitcount_hitslot"
            )
        assert {"hitcount_hitslot_most", "hitcount_hitslot_compact"} <= constraints.keys()

        assert compaction.compact().rows == 60


@pytest.mark.django_db
def test_permissions_are_those_that_the_admin_asks_for():
    permissions = Permission.objects.filter(content_type__app_label="django_hitcount")

    assert {*permissions.values_list("codename", flat=True)} == {
        "view_hitslot",
        "add_correction",
        "view_correction",
        "view_counter",
        "delete_counter",
    }
