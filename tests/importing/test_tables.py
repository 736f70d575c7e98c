"""Hits from the tables of django-hitcount, made by installing it, and from a column."""

from __future__ import annotations

import datetime
import os
import random
import signal
import time
from itertools import count
from unittest import mock

import pytest
from django.contrib import admin
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Sum

from django_hitcount import get_hits, import_hits, record_hit, undo_import
from django_hitcount.buffers import get_buffer
from django_hitcount.db import imports
from django_hitcount.db.tables import DailyHitSlot, HitSlot, Import
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing import Column, HitcountTables, running, tables
from django_hitcount.maintenance.flushing import flush_hits
from tests import children
from tests.app.models import Article, Cover, Dish, Menu, Photo, Recipe, Remark, Review, Small
from tests.faults.test_kills import dies_before
from tests.servers import WAIT_SECONDS
from tests.sessions import wait_for_transactions_of_the_dead

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

EARLIER = datetime.date(2020, 1, 1)


@pytest.fixture
def installed(settings):
    """
    Both apps side by side. The admin keeps nothing of the other one after the test.

    Keys of django-hitcount have 32 bits, so its tests name small ones: others leave large ones.
    """
    registry = {**admin.site._registry}
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "hitcount"]
    call_command("migrate", "hitcount", verbosity=0)
    yield
    drop_old_tables()
    for model in admin.site._registry.keys() - registry.keys():
        admin.site.unregister(model)


def drop_old_tables():
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'hitcount'")
    existing = connection.introspection.table_names()
    names = ("hitcount_hit", "hitcount_hit_count")
    names += ("hitcount_blacklist_ip", "hitcount_blacklist_user_agent")
    with connection.cursor() as cursor:
        for name in names:
            if name in existing:
                cursor.execute(f"DROP TABLE {name}")


def old_hits(obj, total, *moments):
    """What django-hitcount has of an object: a total, and rows of its last hits."""
    from hitcount.models import Hit, HitCount

    old = HitCount.objects.get_for_object(obj)
    HitCount.objects.filter(pk=old.pk).update(hits=total)
    rows = Hit.objects.bulk_create(
        Hit(hitcount=old, ip="203.0.113.1", session="x", user_agent="Firefox") for _ in moments
    )
    for row, moment in zip(rows, moments, strict=True):
        row.created = moment
    Hit.objects.bulk_update(rows, ["created"])


def at(day, hour=12):
    return datetime.datetime(2024, 5, day, hour, tzinfo=datetime.UTC)


def days_of(obj):
    days = [EARLIER, *(datetime.date(2024, 5, n) for n in (1, 2, 3))]
    return [get_hits(obj, first_day=day, last_day=day) for day in days]


def test_totals_are_equal_and_days_are_those_of_the_rows(buffer, installed):
    article, small, review = (
        Article.objects.create(pk=1),
        Small.objects.create(),
        Review.objects.create(pk=2),
    )
    old_hits(article, 100, at(1), at(1), at(2, 23), at(3))  # In Berlin, one is already on May 3.
    old_hits(small, 2, at(1), at(2))
    old_hits(review, 7)
    gone = Article.objects.create(pk=3)
    old_hits(gone, 5, at(1))
    gone.delete()

    done = import_hits(HitcountTables(EARLIER))

    assert done.hits == 109
    assert (days_of(article), get_hits(article)) == ([96, 2, 0, 2], 100)
    assert (days_of(small), get_hits(small)) == ([0, 1, 1, 0], 2)
    assert get_hits(review) == get_hits(Article(pk=review.pk) and review) == 7
    assert done.problems == 2
    assert f"unknown object app.article:{gone.pk or ''}" in done.shown_problems[0]
    assert import_hits(HitcountTables(EARLIER)).was_finished
    undo_import("hitcount")
    assert get_hits(article) == 0


def test_it_need_not_be_installed_any_more(buffer, installed, settings):
    article = Article.objects.create(pk=1)
    old_hits(article, 3, at(1))
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "hitcount"]

    assert import_hits(HitcountTables(EARLIER)).hits == 3
    assert get_hits(article) == 3


def test_the_day_of_hits_without_a_row_must_be_named(buffer, installed):
    article = Article.objects.create(pk=1)
    old_hits(article, 1, at(1))
    assert import_hits(HitcountTables(), import_id="a").hits == 1
    undo_import("a")
    old_hits(article, 4)

    with pytest.raises(InvalidArgument, match="Name a day for them"):
        import_hits(HitcountTables())
    assert get_hits(article) == 0


def test_models_and_keys_that_are_gone_are_problems(buffer, installed):
    from hitcount.models import HitCount

    HitCount.objects.create(
        content_type=ContentType.objects.create(app_label="blog", model="post"), object_pk=1, hits=3
    )
    HitCount.objects.create(
        content_type=ContentType.objects.get_for_model(Photo), object_pk=1, hits=3
    )

    done = import_hits(HitcountTables(EARLIER))

    assert (done.hits, done.problems) == (0, 2)
    assert "unknown object 'blog.post:1', not" in done.shown_problems[0]
    assert "invalid primary key" in done.shown_problems[1]


def test_tables_that_are_not_there_are_an_error():
    with pytest.raises(InvalidArgument, match="has no table 'hitcount_hit_count'"):
        import_hits(HitcountTables(EARLIER))


def test_rows_are_read_in_pieces(buffer, installed, monkeypatch):
    monkeypatch.setattr(tables, "ROWS_AT_A_TIME", 3)
    articles = Article.objects.bulk_create(Article(pk=n) for n in range(1, 11))
    for number, article in enumerate(articles):
        old_hits(article, number + 2, at(1), at(2))

    assert import_hits(HitcountTables(EARLIER)).hits == sum(range(2, 12))
    assert [get_hits(article) for article in articles] == [*range(2, 12)]


def pieces_done():
    return Import.objects.values_list("pieces", flat=True).first() or 0


@pytest.mark.long
def test_killed_and_started_again_all_totals_are_equal(buffer, installed, monkeypatch):
    """HITCOUNT_TEST_IMPORTED may name another number of objects, which have ten hits each."""
    from hitcount.models import Hit, HitCount

    number = int(os.environ.get("HITCOUNT_TEST_IMPORTED", "1000"))
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    if number <= 1000:
        monkeypatch.setattr(running, "PIECE_SIZE", 30)
    monkeypatch.setattr(Hit._meta.get_field("created"), "auto_now_add", False)
    Article.objects.bulk_create((Article(pk=n) for n in range(1, number + 1)), batch_size=1000)
    pks = [*Article.objects.order_by("pk").values_list("pk", flat=True)]
    model = ContentType.objects.get_for_model(Article)
    rows = [HitCount(content_type=model, object_pk=pk, hits=rng.randrange(10, 50)) for pk in pks]
    wanted = {str(row.object_pk): row.hits for row in rows}
    HitCount.objects.bulk_create(rows, batch_size=1000)
    olds = [*HitCount.objects.values_list("pk", flat=True)]
    for _ in range(10):
        hits = [
            Hit(hitcount_id=old, ip="x", session="x", user_agent="x")
            for old in rng.sample(olds, len(olds))
        ]
        for hit in hits:
            hit.created = at(rng.randrange(1, 29), rng.randrange(24))
        Hit.objects.bulk_create(hits, batch_size=1000)
    get_hits(Article.objects.order_by("pk")[:500])  # With Redis, it now keeps these totals.

    def work():
        import_hits(HitcountTables(EARLIER))

    began = time.monotonic()
    import_hits(HitcountTables(EARLIER), dry_run=True)
    seconds = time.monotonic() - began
    killed = []
    for turn in range(10):
        # While it writes, or at any moment before that. It must not finish.
        latest = WAIT_SECONDS if turn % 2 else rng.uniform(0, 2) * seconds
        ends, done = time.monotonic() + latest, pieces_done()
        pid = children.fork(work)
        while pieces_done() == done and time.monotonic() < ends:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.05))
        children.kill(pid)
        killed.append(pieces_done())
    assert Import.objects.get().is_open
    began = time.monotonic()
    import_hits(HitcountTables(EARLIER))
    print(f"read in {seconds:.1f} s; killed at pieces {killed}; {time.monotonic() - began:.1f} s")
    assert import_hits(HitcountTables(EARLIER)).was_finished
    flush_hits()

    some = Article.objects.order_by("pk")[:500]
    assert get_hits(some) == {article: wanted[str(article.pk)] for article in some}
    for table in (HitSlot, DailyHitSlot):
        found = table.objects.order_by().values_list("object_id").annotate(Sum("hits"))
        assert {pk: int(hits) for pk, hits in found} == wanted


def test_a_column_is_imported_on_a_named_day(buffer):
    recipes = [Recipe.objects.create(title="x") for _ in range(5)]
    Recipe.objects.filter(pk__in=[recipe.pk for recipe in recipes[1:]]).update(downloads=7)
    record_hit(recipes[1], amount=2, at=EARLIER)

    done = import_hits(Column("app.Recipe", "downloads", EARLIER, "downloads"))

    assert done.import_id == "column app.recipe.downloads downloads"
    assert [get_hits(recipe, counter="downloads") for recipe in recipes] == [0, 7, 7, 7, 7]
    assert get_hits(recipes[1], counter="downloads", first_day=EARLIER, last_day=EARLIER) == 7


OTHER_DAYS = [EARLIER + datetime.timedelta(days=n) for n in (-1, 1)]


def dies_after_commit(call):
    """A patch that kills the process after the given COMMIT, before totals are read again."""
    pause, calls = get_buffer().pause_totals, count(1)

    def pause_and_die(keys):
        if next(calls) == call:
            transaction.on_commit(children.die)
        pause(keys)

    return lambda: mock.patch.object(get_buffer(), "pause_totals", pause_and_die)


@pytest.mark.parametrize("day", OTHER_DAYS, ids=["an earlier day", "a later day"])
@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize("step", ["before a piece", "before the COMMIT", "after the COMMIT"])
def test_a_column_whose_import_is_killed_counts_once_if_continued_with_another_day(
    buffer, monkeypatch, day, call, step
):
    monkeypatch.setattr(running, "PIECE_SIZE", 2)
    recipes = [Recipe.objects.create(title="x") for _ in range(5)]
    for number, recipe in enumerate(recipes, 1):
        Recipe.objects.filter(pk=recipe.pk).update(downloads=number)
    get_hits(recipes, counter="downloads")  # With Redis, it now keeps these totals.
    dies = {
        "before a piece": dies_before(running, "write_piece", call=call),
        "before the COMMIT": dies_before(imports, "write_piece", call=call),
        "after the COMMIT": dies_after_commit(call),
    }[step]

    def begin():
        import_hits(Column("app.Recipe", "downloads", EARLIER, "downloads"))

    with dies():
        assert children.run(begin) == -signal.SIGKILL
    wait_for_transactions_of_the_dead()
    import_hits(Column("app.Recipe", "downloads", day, "downloads"))

    flush_hits()
    wanted = dict(zip(recipes, range(1, 6), strict=True))
    assert get_hits(recipes, counter="downloads") == wanted
    days = {"first_day": OTHER_DAYS[0], "last_day": OTHER_DAYS[1]}
    assert get_hits(recipes, counter="downloads", **days) == wanted
    assert undo_import("column app.recipe.downloads downloads") == 15
    assert get_hits(recipes, counter="downloads") == dict.fromkeys(recipes, 0)


@pytest.mark.parametrize("day", [datetime.date(2024, 6, 1), EARLIER])
@pytest.mark.parametrize("call", [2, 3])
def test_tables_whose_import_is_killed_count_once_if_continued_with_another_day(
    buffer, installed, monkeypatch, day, call
):
    """Some hits have a row, and others count on ``day``, before or after these."""
    monkeypatch.setattr(running, "PIECE_SIZE", 2)
    articles = [Article.objects.create(pk=pk) for pk in (1, 2, 3)]
    for article in articles:
        old_hits(article, 10, at(1), at(2), at(3))
    first_day = EARLIER if day != EARLIER else datetime.date(2024, 6, 1)

    with dies_before(running, "write_piece", call=call)():
        assert children.run(lambda: import_hits(HitcountTables(first_day))) == -signal.SIGKILL
    import_hits(HitcountTables(day))

    flush_hits()
    assert get_hits(articles) == dict.fromkeys(articles, 10)


def test_columns_of_models_with_other_keys(buffer):
    photo = Photo.objects.create()
    Remark.objects.create(content_type=ContentType.objects.get_for_model(Photo), object_id=7)
    dish, menu = Dish.objects.create(), Menu.objects.create(path="/a:b ü")
    Dish.objects.update(views=3)
    Menu.objects.update(views=4)
    cover = Cover.objects.create(photo=photo)

    for model in ("app.Dish", "app.Menu"):
        import_hits(Column(model, "views", EARLIER))
    import_hits(Column("app.Remark", "object_id", EARLIER))

    assert (get_hits(dish), get_hits(menu), get_hits(cover)) == (3, 4, 0)
    assert get_hits(Remark.objects.get()) == 7


def test_a_column_that_is_null_is_no_problem(buffer):
    article, review = Article.objects.create(), Review.objects.create(stars=4)

    done = import_hits(Column("app.Article", "review__stars", EARLIER), strict=True)

    assert (done.hits, done.problems) == (4, 0)
    assert (get_hits(article), get_hits(review)) == (0, 4)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("app.Photo", r"Invalid column: 'views' of app\.Photo"),
        ("app.Nothing", r"Invalid model: 'app\.Nothing'"),
        ("", "Invalid model: ''"),
    ],
)
def test_a_column_that_is_not_there_is_an_error(buffer, model, message):
    with pytest.raises(InvalidArgument, match=message):
        import_hits(Column(model, "views", EARLIER))


@pytest.mark.parametrize("column", ["title", "saved_at"])
def test_a_column_without_numbers_is_an_error(buffer, column):
    Recipe.objects.create(title="tea")

    with pytest.raises(InvalidArgument, match="holds no numbers"):
        import_hits(Column("app.Recipe", column, EARLIER))


@pytest.mark.parametrize("source", [HitcountTables(using="nope"), HitcountTables(day="2024-05-01")])
def test_an_unknown_database_and_a_day_that_is_none_are_errors(source):
    with pytest.raises(InvalidArgument, match=r"Unknown database 'nope'|Invalid day: '2024-05-01'"):
        import_hits(source)
