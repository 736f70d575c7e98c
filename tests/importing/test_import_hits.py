"""import_hits() adds the hits of a source exactly once, and undo_import() takes them back."""

from __future__ import annotations

import datetime
import random
import time
from collections import Counter
from unittest import mock

import pytest
from django.db import connection, transaction

from django_hitcount import (
    forget_hits,
    get_hits,
    get_visitors,
    import_hits,
    move_hits,
    record_hit,
    undo_import,
)
from django_hitcount.buffers import get_buffer
from django_hitcount.counters.days import day_of
from django_hitcount.db import imports
from django_hitcount.db.counter_keys import content_type_id_of, counter_key
from django_hitcount.db.tables import (
    DailyHitSlot,
    DailyVisitors,
    HitSlot,
    Import,
    ImportedHits,
    MissedRecord,
)
from django_hitcount.exceptions import BufferUnavailable, ImportRefused, InvalidArgument
from django_hitcount.importing import Objects, pieces, running
from django_hitcount.importing.rows import SourceRow
from django_hitcount.maintenance import forgetting
from django_hitcount.maintenance.compaction import compact, compact_hits
from django_hitcount.maintenance.flushing import flush_hits
from tests import children
from tests.answers import lost_commit_answer
from tests.app.models import Article, Page, Photo, Review, Small, Translation
from tests.tables import daily_sums, slot_sums

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

MODELS = {
    "int": lambda: Small.objects.create(),
    "bigint": lambda: Article.objects.create(title="Tea"),
    "uuid": lambda: Photo.objects.create(),
    "string": lambda: Page.objects.create(path="=/a:b/%()\nü'"),
    "child": lambda: Review.objects.create(title="Tea"),
}

MAY = datetime.date(2024, 5, 1)
JUNE = datetime.date(2024, 6, 1)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture
def many() -> list[Article]:
    return Article.objects.bulk_create(Article(title=f"{n}") for n in range(30))


def import_days(*hits, import_id="old", counter="views", **options):
    return import_hits(Objects(hits, counter), import_id=import_id, **options)


def on(obj, day, counter="views"):
    return get_hits(obj, first_day=day, last_day=day, counter=counter)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_hits_are_added_to_total_and_day_and_taken_back(buffer, make):
    obj = make()
    record_hit(obj, amount=2, at=MAY)
    assert get_hits(obj) == 2  # With Redis, it now keeps the total.

    done = import_days((obj, MAY, 3), (obj, JUNE, 4), (obj, MAY, 10))

    assert (done.rows, done.hits, done.objects) == (2, 17, 1)
    assert (done.first_day, done.last_day) == (MAY, JUNE)
    assert (get_hits(obj), on(obj, MAY), on(obj, JUNE)) == (19, 15, 4)
    flush_hits()
    compact()
    assert (get_hits(obj), on(obj, MAY), on(obj, JUNE)) == (19, 15, 4)
    record_hit(obj, at=JUNE)

    assert undo_import("old") == 17
    assert (get_hits(obj), on(obj, MAY), on(obj, JUNE)) == (3, 2, 1)
    flush_hits()
    compact()
    assert (get_hits(obj), on(obj, MAY), on(obj, JUNE)) == (3, 2, 1)
    assert not Import.objects.exists()
    assert not ImportedHits.objects.exists()
    assert not MissedRecord.objects.exists()


def test_a_second_run_adds_nothing(buffer, article):
    import_days((article, MAY, 3))

    done = import_days((article, MAY, 3), (article, JUNE, 5))

    assert (done.was_finished, done.hits) == (True, 0)
    assert get_hits(article) == 3


def test_after_an_undo_the_same_source_can_be_imported_again(buffer, article):
    import_days((article, MAY, 3))
    undo_import("old")

    assert import_days((article, MAY, 4)).hits == 4
    assert get_hits(article) == 4


@pytest.mark.parametrize(
    ("strategy", "may", "june"), [("add", 12, 7), ("replace", 2, 7), ("larger", 10, 7)]
)
def test_strategies_differ_on_days_that_have_hits(buffer, article, strategy, may, june):
    record_hit(article, amount=10, at=MAY)
    record_hit(article, amount=5, at=JUNE)
    record_hit(article, amount=1, at=datetime.date(2024, 7, 1))
    assert get_hits(article) == 16
    more = {"add": 2, "replace": 7, "larger": 7}[strategy]

    import_days((article, MAY, 2), (article, JUNE, more), strategy=strategy)

    assert (on(article, MAY), on(article, JUNE)) == (may, june)
    assert get_hits(article) == may + june + 1
    undo_import("old")
    assert (on(article, MAY), on(article, JUNE), get_hits(article)) == (10, 5, 16)


def test_hits_of_0_replace_others_and_add_nothing(buffer, article):
    record_hit(article, amount=10, at=MAY)

    for strategy, added in (("add", 0), ("larger", 0), ("replace", -10)):
        assert import_days((article, MAY, 0), strategy=strategy).hits == added
        assert get_hits(article) == 10 + added
        undo_import("old")
    import_days((article, MAY, 0), strategy="replace")
    assert get_hits(article) == 0


def test_counters_are_apart(buffer, article):
    import_days((article, MAY, 3), counter="downloads")

    assert get_hits(article, counter="downloads") == 3
    assert get_hits(article) == 0
    import_days((article, MAY, 4), import_id="views")
    assert get_hits(article) == 4


def test_a_dry_run_says_what_would_change_and_writes_nothing(buffer, many):
    record_hit(many[0], amount=10, at=MAY)
    flush_hits()
    hits = [(obj, MAY, 4) for obj in many]
    before = [*HitSlot.objects.values_list()], [*DailyHitSlot.objects.values_list()]

    found = {
        strategy: import_days(*hits, strategy=strategy, dry_run=True)
        for strategy in running.STRATEGIES
    }

    assert {name: (done.rows, done.hits) for name, done in found.items()} == {
        "add": (30, 120),
        "replace": (30, 29 * 4 - 6),
        "larger": (29, 29 * 4),
    }
    assert before == ([*HitSlot.objects.values_list()], [*DailyHitSlot.objects.values_list()])
    assert not Import.objects.exists()


def test_an_import_with_days_of_another_one_is_refused(buffer, article, many):
    import_days((article, MAY, 3), (article, JUNE, 3))

    for options in ({}, {"dry_run": True}, {"strategy": "replace"}):
        with pytest.raises(ImportRefused, match=f"has already imported hits of 'views' on {MAY}"):
            import_days((many[0], MAY, 1), import_id="new", **options)
    both = [(many[0], MAY, 1), (many[0], JUNE, 1)]
    with pytest.raises(ImportRefused, match=f"of 'views' on 2 days from {MAY} to {JUNE}"):
        import_days(*both, import_id="new")

    assert get_hits(many[0]) == 0
    for n, day in enumerate((datetime.date(2024, 5, 15), datetime.date(2024, 6, 2))):
        import_days((many[0], day, 1), import_id=f"between {n}")
    import_days((Photo.objects.create(), MAY, 1), import_id="photos")
    import_days((article, MAY, 1), import_id="downloads", counter="downloads")


def test_days_can_be_left_out(buffer, article):
    days = [(article, MAY + datetime.timedelta(days=n), 1) for n in range(10)]

    done = import_days(*days, first_day=days[2][1], last_day=days[5][1])

    assert (done.hits, done.skipped) == (4, {"a day that was left out": 6})


def test_only_one_import_runs_at_a_time(buffer, article, many):
    dies = mock.patch.object(running, "write_piece", side_effect=KeyboardInterrupt)
    with dies, pytest.raises(KeyboardInterrupt):
        import_days((article, MAY, 3))

    with pytest.raises(ImportRefused, match="The import 'old' is not finished"):
        import_days((many[0], JUNE, 1), import_id="new")
    for is_dry in (True, False):
        with pytest.raises(ImportRefused, match="has begun with the strategy 'add', not 'replace'"):
            import_days((article, MAY, 3), strategy="replace", dry_run=is_dry)
    assert import_days((article, MAY, 3)).hits == 3
    assert import_days((many[0], JUNE, 1), import_id="new").hits == 1


def test_two_that_begin_at_once_do_not_both_run(buffer, article, monkeypatch):
    """Another import is inserted after this one has looked."""
    check = imports.check_import

    def check_and_lose(*args):
        found = check(*args)
        if connection.in_atomic_block:
            Import.objects.create(name="other", strategy="add", days=[])
        return found

    monkeypatch.setattr(imports, "check_import", check_and_lose)

    with pytest.raises(ImportRefused, match="Another import has begun at the same time"):
        import_days((article, MAY, 3))
    assert get_hits(article) == 0


def test_who_starts_the_same_import_again_takes_it_over(buffer, many, monkeypatch):
    monkeypatch.setattr(running, "PIECE_SIZE", 10)
    hits = [(obj, MAY, 4) for obj in many]
    write, calls = running.write_piece, []

    def write_second_time(*args):
        calls.append(args)
        if len(calls) == 2:
            import_days(*hits)
        return write(*args)

    monkeypatch.setattr(running, "write_piece", write_second_time)

    with pytest.raises(ImportRefused, match="Another process has continued or undone"):
        import_days(*hits)
    assert set(get_hits(many).values()) == {4}


def test_who_takes_it_over_stops_the_other_before_its_next_piece(buffer, article, monkeypatch):
    write = running.write_piece

    def take_over_and_write(*args):
        imports.begin_import("old", "add", [])
        return write(*args)

    monkeypatch.setattr(running, "write_piece", take_over_and_write)

    with pytest.raises(ImportRefused, match="Another process has continued or undone"):
        import_days((article, MAY, 3))
    assert get_hits(article) == 0


def test_an_undo_stops_an_import_that_runs(buffer, many, monkeypatch):
    monkeypatch.setattr(running, "PIECE_SIZE", 10)
    hits = [(obj, MAY, 4) for obj in many]
    write, calls = running.write_piece, []

    def undo_before_second(*args):
        calls.append(args)
        if len(calls) == 2:
            undo_import("old")
        return write(*args)

    monkeypatch.setattr(running, "write_piece", undo_before_second)

    with pytest.raises(ImportRefused, match="continued or undone"):
        import_days(*hits)
    assert set(get_hits(many).values()) == {0}


def test_an_undo_before_the_end_of_an_import_is_no_success(buffer, article, monkeypatch):
    finish = imports.finish_import

    def undo_first(*args):
        undo_import("old")
        finish(*args)

    monkeypatch.setattr(imports, "finish_import", undo_first)

    with pytest.raises(ImportRefused, match="continued or undone"):
        import_days((article, MAY, 3))
    assert get_hits(article) == 0


def test_an_undo_that_has_begun_must_be_finished(buffer, many, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_SIZE", 10)
    import_days(*[(obj, MAY, 4) for obj in many])
    take = running.take_piece
    monkeypatch.setattr(running, "take_piece", _until_second(take, KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        undo_import("old")
    assert Counter(get_hits(many).values()) == {0: 10, 4: 20}

    with pytest.raises(ImportRefused, match="An undo of the import 'old' has begun"):
        import_days((many[0], MAY, 4))
    monkeypatch.setattr(running, "take_piece", take)
    assert undo_import("old") == 80
    assert set(get_hits(many).values()) == {0}


def _until_second(function, error):
    calls = []

    def call(*args):
        calls.append(args)
        if len(calls) == 2:
            raise error
        return function(*args)

    return call


def test_undo_takes_back_only_what_this_import_has_added(buffer, many):
    first, second, *_ = many
    import_days((first, MAY, 3), import_id="a")
    import_days((first, JUNE, 5), (second, JUNE, 5), import_id="b")

    undo_import("b")

    assert (get_hits(first), get_hits(second)) == (3, 0)
    with pytest.raises(InvalidArgument, match=r"Unknown import: 'b'\. The imports are: 'a'"):
        undo_import("b")


def test_a_deleted_object_has_nothing_to_take_back(buffer):
    page = Page.objects.create(path="/a/")
    import_days((page, MAY, 3))
    page.delete()
    flush_hits()
    compact_hits()
    page = Page.objects.create(path="/a/")

    assert undo_import("old") == 0
    assert get_hits(page) == 0


@pytest.mark.parametrize("forgotten", range(6))
def test_an_undo_meanwhile_takes_back_nothing_that_is_forgotten(
    buffer, article, monkeypatch, forgotten
):
    """Wherever it comes between the transactions that delete the rows of an object."""
    import_days((article, MAY, 5))
    write, calls = forgetting._write, []

    def write_and_undo(*args):
        write(*args)
        calls.append(args)
        if len(calls) == forgotten + 1:
            undo_import("old")

    monkeypatch.setattr(forgetting, "_write", write_and_undo)
    forget_hits(article)
    flush_hits()

    assert get_hits(article) == 0
    assert slot_sums([article]) == daily_sums([article]) == {article: 0}


def test_forget_hits_forgets_imported_hits(buffer, article):
    import_days((article, MAY, 3))

    forget_hits(article)
    flush_hits()

    assert not ImportedHits.objects.exists()


class WithVisitors:
    """A source with visitors."""

    name = "visitors"

    def __init__(self, *rows) -> None:
        self.hits = rows

    def rows(self, findings):
        for obj, day, hits, visitors in self.hits:
            key = counter_key(obj, counter="views")[:2]
            yield SourceRow("here", key, "views", day, hits, visitors)


def visitors_on(obj, day):
    return get_visitors(obj, first_day=day, last_day=day)


def test_visitors_are_added_and_taken_back(rule, article):
    rule(visitors=True)
    import_hits(WithVisitors((article, MAY, 5, 3), (article, JUNE, 2, 2)))

    assert (visitors_on(article, MAY), visitors_on(article, JUNE)) == (3, 2)
    both = get_visitors(article, first_day=MAY, last_day=JUNE)
    assert (both, both.is_distinct) == (5, False)
    compact_hits()
    assert visitors_on(article, MAY) == 3

    undo_import("visitors")
    assert (visitors_on(article, MAY), visitors_on(article, JUNE)) == (0, 0)
    assert not DailyVisitors.objects.exists()


@pytest.mark.parametrize(("strategy", "visitors"), [("add", 7), ("replace", 4), ("larger", 4)])
def test_strategies_never_lower_visitors(rule, article, strategy, visitors):
    rule(visitors=True)
    import_hits(WithVisitors((article, MAY, 9, 4), (article, JUNE, 9, 1)), import_id="a")
    undone = [(article, MAY, 3, 3), (article, JUNE, 2, 2)]
    with mock.patch.object(imports, "find_common_days", return_value=None):
        import_hits(WithVisitors(*undone), import_id="b", strategy=strategy)

    assert visitors_on(article, MAY) == visitors
    assert visitors_on(article, JUNE) == (3 if strategy == "add" else 2)
    undo_import("b")
    assert (visitors_on(article, MAY), visitors_on(article, JUNE)) == (4, 1)


def test_a_counter_without_visitors_gets_none(buffer, article):
    import_hits(WithVisitors((article, MAY, 5, 3)))

    assert not DailyVisitors.objects.exists()


@pytest.mark.parametrize(
    ("day", "strategy", "is_possible"),
    [(0, "add", True), (0, "replace", False), (0, "larger", False), (1, "add", False)],
)
def test_today_can_only_be_added_to_and_the_future_is_a_problem(
    buffer, article, day, strategy, is_possible
):
    when = day_of() + datetime.timedelta(days=day)

    done = import_days((article, when, 3), strategy=strategy)

    assert get_hits(article) == (3 if is_possible else 0)
    assert done.problems == (0 if is_possible else 1)
    assert is_possible or "the last day that can be imported" in done.shown_problems[0]


def test_rows_with_a_problem_are_left_out_and_listed(buffer, article):
    gone = Article.objects.create()
    gone.delete()
    gone.pk, gone._state.adding = 12345, False
    rows = [
        (article, MAY, 3),
        (Article(), MAY, 1),
        (gone, MAY, 1),
        (article, "2024-05-01", 1),
        (article, None, 1),
        (article, MAY, "many"),
        (article, MAY, 10**16),
        (article, datetime.date(24, 5, 1), 1),
    ]

    with pytest.raises(InvalidArgument, match="7 rows have a problem, so nothing was imported"):
        import_days(*rows, strict=True)
    assert get_hits(article) == 0
    done = import_days(*rows)

    assert get_hits(article) == 3
    assert done.problems == 7
    text = "\n".join(done.shown_problems)
    for expected in (
        "row 2: Cannot count hits of <Article: Article object (None)>",
        "row 3: unknown object app.article:12345",
        "row 4: Invalid day: '2024-05-01'",
        "row 5: the day is missing",
        "row 6: invalid hits 'many'",
        "row 7: more than 1,000,000,000,000 hits: 10000000000000000",
        "row 8: day 0024-05-01 is before 1970-01-01",
    ):
        assert expected in text


def test_many_problems_are_counted_and_few_are_listed(buffer, article):
    done = import_days(*[(article, MAY, "x")] * 100)

    assert (done.problems, len(done.shown_problems)) == (100, 20)
    assert not Import.objects.exists()  # So it can be imported once that is mended.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"import_id": ""}, "Invalid id of an import: ''"),
        ({"import_id": None, "first_day": MAY}, "Invalid id of an import: ''"),
        ({"import_id": "x" * 201}, "1 to 200 characters"),
        ({"import_id": "a\0b"}, "without NUL"),
        ({"import_id": "a\udcff"}, "half surrogate pairs"),
        ({"first_day": datetime.datetime(2024, 5, 1)}, "Invalid day: datetime"),
        ({"first_day": "2024-05-01"}, "Invalid day: '2024-05-01'. Pass a date"),
        ({"first_day": MAY, "last_day": datetime.date(2024, 4, 30)}, "Pass the earlier day first"),
        ({"strategy": "most"}, "Invalid strategy: 'most'. Pass one of 'add', 'replace', 'larger'"),
    ],
)
def test_an_invalid_argument_writes_nothing(buffer, article, options, message):
    with pytest.raises(InvalidArgument, match=message):
        import_days((article, MAY, 3), **options)
    assert get_hits(article) == 0


def test_an_import_within_a_transaction_is_an_error(buffer, article):
    with transaction.atomic(), pytest.raises(RuntimeError):
        import_days((article, MAY, 3))


def test_progress_is_reported(buffer, many, monkeypatch):
    monkeypatch.setattr(running, "PIECE_SIZE", 10)
    monkeypatch.setattr(running, "ROWS_PER_REPORT", 20)
    calls = []
    import_days(*[(o, MAY, 1) for o in many], progress=lambda *call: calls.append(call))
    assert calls == [
        *(("read", 20, 0), ("read", 30, 0)),
        *(("written", 10, 30), ("written", 20, 30), ("written", 30, 30)),
    ]
    calls.clear()
    monkeypatch.setattr(pieces, "PIECE_SIZE", 20)
    undo_import("old", progress=lambda *call: calls.append(call))
    assert calls == [("undone", 20, 30), ("undone", 30, 30)]


@pytest.mark.parametrize("strategy", running.STRATEGIES)
def test_a_lost_answer_to_a_commit_counts_once(buffer, article, monkeypatch, strategy):
    write, take = running.write_piece, running.take_piece

    def write_and_lose(*args):
        with lost_commit_answer():
            return write(*args)

    def take_and_lose(*args):
        with lost_commit_answer():
            return take(*args)

    monkeypatch.setattr(running, "write_piece", write_and_lose)
    monkeypatch.setattr(running, "take_piece", take_and_lose)

    assert import_days((article, MAY, 3), strategy=strategy).hits == 3
    assert get_hits(article) == 3
    undo_import("old")
    assert get_hits(article) == 0


def test_totals_that_redis_cannot_drop_are_left_to_the_flush(redis_buffer, article):
    record_hit(article)
    assert get_hits(article) == 1
    with mock.patch.object(
        type(redis_buffer), "discard_totals", side_effect=BufferUnavailable("away")
    ):
        import_days((article, MAY, 3))
    assert MissedRecord.objects.exists()

    flush_hits()
    assert get_hits(article) == 4
    assert not MissedRecord.objects.exists()


@pytest.mark.parametrize("step", ["discard_totals", "finish"])
def test_a_process_that_dies_after_a_piece_leaves_no_wrong_total(redis_buffer, article, step):
    record_hit(article)
    assert get_hits(article) == 1
    target = (get_buffer(), step) if step == "discard_totals" else (imports, "finish_import")
    with mock.patch.object(*target, side_effect=children.die):
        assert children.run(lambda: import_days((article, MAY, 3))) == -9

    flush_hits()
    assert get_hits(article) == 4
    assert import_days((article, MAY, 3)).hits == 0
    assert get_hits(article) == 4


@pytest.mark.long
def test_killed_at_random_moments_and_started_again_it_counts_once(buffer, tmp_path, monkeypatch):
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    monkeypatch.setattr(running, "PIECE_SIZE", 50)
    monkeypatch.setattr(pieces, "PIECE_SIZE", 50)
    objects = Article.objects.bulk_create(Article(title="x") for _ in range(400))
    for obj in objects[::3]:
        record_hit(obj, at=MAY)
    get_hits(objects)
    days = [MAY + datetime.timedelta(days=n) for n in range(5)]
    hits = [(obj, day, rng.randrange(1, 9)) for obj in objects for day in days]
    rng.shuffle(hits)
    wanted = Counter(dict.fromkeys(objects[::3], 1))
    for obj, _, number in hits:
        wanted[obj] += number

    def run_until_killed(work):
        pid = children.fork(work)
        time.sleep(rng.uniform(0.05, 0.4))  # Any moment will do.
        children.kill(pid)

    for _ in range(10):
        run_until_killed(lambda: import_days(*hits))
        if rng.random() < 0.3:
            flush_hits()
    import_days(*hits)
    assert import_days(*hits).was_finished
    flush_hits()
    assert get_hits(objects) == {obj: wanted[obj] for obj in objects}
    assert slot_sums(objects) == daily_sums(objects) == {obj: wanted[obj] for obj in objects}

    for _ in range(5):
        run_until_killed(lambda: undo_import("old"))
    if Import.objects.exists():
        undo_import("old")
    flush_hits()
    own = {obj: int(n % 3 == 0) for n, obj in enumerate(objects)}
    assert get_hits(objects) == own
    assert slot_sums(objects) == daily_sums(objects) == own


def test_an_undo_finds_hits_and_visitors_that_were_moved(rule, many):
    rule(visitors=True)
    first, second, *_ = many
    import_hits(
        WithVisitors(
            (first, MAY, 5, 3), (second, MAY, 2, 1), (first, JUNE, 1, 1), (many[2], MAY, 4, 2)
        )
    )
    record_hit(first, at=MAY)

    move_hits(first, to=second)
    assert (get_hits(first), get_hits(second)) == (0, 9)
    assert visitors_on(second, MAY) == 4

    assert undo_import("visitors") == 12
    assert (get_hits(first), get_hits(second), get_hits(many[2])) == (0, 1, 0)
    assert not DailyVisitors.objects.exists()


def test_hits_of_an_object_that_shares_another_ones_are_that_ones(buffer, article):
    pages = [Translation.objects.create(article=article) for _ in range(2)]
    label = Translation._meta.label_lower

    def rows(findings):
        for number, page in enumerate(pages):
            key = content_type_id_of(Translation), str(page.pk)
            yield SourceRow(f"{label} {number}", key, "views", MAY, 3)

    source = mock.Mock()
    source.rows, source.name = rows, "translations"
    done = import_hits(source)

    assert (done.hits, done.problems) == (6, 0)
    assert get_hits(article) == get_hits(pages[0]) == 6
    undo_import("translations")
    assert get_hits(article) == 0
