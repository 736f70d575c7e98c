"""The commands import_hits and export_hits: as the functions, for people."""

from __future__ import annotations

import datetime
import io
import sys
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from django_hitcount import get_hits, record_hit
from django_hitcount.buffers.redis import RedisBuffer
from django_hitcount.db.tables import Import
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.importing import CsvFiles, LogFiles, pieces, running
from django_hitcount.management import ProgressLine
from tests.app.models import Article, Recipe
from tests.importing.test_logs import PLAUSIBLE, line

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("redis"),
    pytest.mark.urls("tests.importing.test_logs"),
]

MAY = datetime.date(2024, 5, 1)


@pytest.fixture
def article() -> Article:
    return Article.objects.create(pk=1)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "hits.csv"
    path.write_text("date,object,hits\n2024-05-01,app.article:1,3\n2024-05-02,app.article:2,1\n")
    return str(path)


def run(*args, **options) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def test_a_csv_file_is_imported_once_and_undone(buffer, article, file):
    name = CsvFiles([file]).name
    dry = run("import_hits", "csv", file, dry_run=True)
    assert dry.startswith(f"1 of 1 rows compared\nWould import 3 hits as '{name}':")
    assert get_hits(article) == 0

    assert run("import_hits", "csv", file).splitlines() == [
        "1 of 1 rows written",
        f"Imported 3 hits as '{name}':",
        "  1 row of 1 object, from 2024-05-01 to 2024-05-01",
        "1 row was left out because of a problem:",
        "  hits.csv, line 3: unknown object app.article:2",
    ]
    assert get_hits(article) == 3
    assert run("import_hits", "csv", file).splitlines() == [
        f"'{name}' was imported before: 0 hits added.",
        f"To import it again, undo it first (--undo '{name}'), or name another --id.",
    ]
    assert (
        run("import_hits", "--undo", name, "--dry-run") == f"Would take back 3 hits of '{name}'.\n"
    )
    assert get_hits(article) == 3
    undone = run("import_hits", undo=name).splitlines()
    assert undone == ["1 of 1 rows undone", f"Took back 3 hits of '{name}'."]
    assert get_hits(article) == 0
    assert run("import_hits", "csv", file, "--id", "new", verbosity=0) == ""
    assert get_hits(article) == 3


def test_options_of_django_may_stand_before_and_after_the_source(article, file):
    assert run("import_hits", "csv", file, "--dry-run", "--verbosity", "0") == ""
    assert run("import_hits", "-v0", "csv", file, "--dry-run") == ""
    assert "Would import" in run("import_hits", "--dry-run", "csv", file)
    assert "Would import" in run("import_hits", "csv", file, "--dry-run", "--traceback")


def test_numbers_are_printed_for_people(article, tmp_path):
    one, many = tmp_path / "one.csv", tmp_path / "many.csv"
    one.write_text("date,object,hits\n2024-05-01,app.article:1,1\n")
    many.write_text("date,object,hits\n2024-05-02,app.article:1,1200\n")

    assert "Imported 1 hit as" in run("import_hits", "csv", str(one))
    assert "Imported 1,200 hits as 'many'" in run("import_hits", "csv", str(many), "--id", "many")
    assert "Took back 1,200 hits of" in run("import_hits", undo="many")


def test_many_problems_are_counted_and_the_first_are_listed(article, tmp_path):
    path = tmp_path / "hits.csv"
    lines = [f"2024-05-01,app.article:{number},1\n" * 2 for number in range(2, 32)]
    path.write_text("date,object,hits\n" + "".join(lines))

    said = run("import_hits", "csv", str(path), "--dry-run").splitlines()

    assert said[1] == "60 rows were left out because of a problem, such as:"
    assert said[2] == "  hits.csv, line 2: unknown object app.article:2"
    assert len(said) == 22


@pytest.mark.parametrize("command", [("import_hits", "csv", "hits.csv"), ("export_hits",)])
def test_an_invalid_day_is_named(command):
    with pytest.raises(CommandError, match="'2024-5-1' is no day, such as 2020-01-31"):
        run(*command, "--first-day", "2024-5-1")


def test_a_file_that_has_changed_is_another_import(buffer, article, file):
    run("import_hits", "csv", file)
    with open(file, "a") as more:
        more.write(f"2024-05-02,app.article:{article.pk},4\n")

    with pytest.raises(CommandError, match="has already imported hits of 'views' on 2024-05-01"):
        run("import_hits", "csv", file)
    run("import_hits", "csv", file, "--first-day", "2024-05-02")

    assert get_hits(article) == 7


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Name a source, or undo an import: --undo ID"),
        (["--undo", "x"], "Unknown import: 'x'. The imports are: none"),
        (["csv", "none.csv"], "Cannot read none.csv"),
        (["column", "app.Recipe.title", "--day", "2024-05-01"], "holds no numbers"),
        (["hitcount"], "has no table 'hitcount_hit_count'"),
        (["--undo", "\udcff", "--dry-run"], r"Unknown import: '\udcff'"),
        (["hitcount", "--database", "nope"], "Unknown database 'nope'"),
        (["csv", "FILE", "--strict"], "1 rows have a problem, so nothing was imported"),
        (["csv", "FILE", "--counter", "likes"], "Unknown counter 'likes'"),
    ],
)
def test_errors_are_said_in_a_line(buffer, article, file, args, message):
    Recipe.objects.create(title="tea")
    with pytest.raises(CommandError) as caught:
        run("import_hits", *[file if arg == "FILE" else arg for arg in args])
    assert message in str(caught.value)


def test_every_source_has_its_options(buffer, article, tmp_path):
    (tmp_path / "access.log").write_text(line() + line(agent="Googlebot/2.1") + line("/list/"))
    (tmp_path / "imported_pages.csv").write_text(PLAUSIBLE)
    recipe = Recipe.objects.create()
    Recipe.objects.update(views=5)

    log = run("import_hits", "log", str(tmp_path / "access.log"), "--resolver", f"{__name__}.find")
    assert "  1 refused: bot\n  1 skipped: no object at the URL" in log
    run("import_hits", "--undo", LogFiles([tmp_path / "access.log"]).name)
    plausible = run(
        *("import_hits", "plausible", str(tmp_path / "imported_pages.csv"), "--strategy"),
        *("larger", "--first-day", "2024-05-02", "--last-day", "2024-05-02"),
    )
    assert "Imported 1 hit as 'plausible imported_pages.csv " in plausible
    assert "  1 skipped: a day that was left out" in plausible
    run("import_hits", "column", "app.Recipe.views", "--day", "2020-01-01")
    assert get_hits(recipe) == 5


def test_a_log_without_an_object_says_how_to_name_some(article, tmp_path):
    path = tmp_path / "access.log"
    path.write_text(line("/list/"))

    said = run("import_hits", "log", str(path)).splitlines()

    assert said[1] == "  1 skipped: no object at the URL"
    assert said[2].startswith("No URL has an object. By default, only the pages of DetailViews")
    said = run("import_hits", "log", str(path), "--resolver", f"{__name__}.find")
    assert f"No URL has an object: {__name__}.find has returned none" in said
    path.write_text(line("/list/") + line())
    assert "No URL has an object" not in run("import_hits", "log", str(path))


@pytest.fixture
def unmigrated():
    recorder, name = MigrationRecorder(connection), ("django_hitcount", "0001_initial")
    with connection.schema_editor() as editor:
        editor.delete_model(Import)
    recorder.record_unapplied(*name)
    yield
    recorder.record_applied(*name)
    with connection.schema_editor() as editor:
        editor.create_model(Import)


def test_before_migrate_the_commands_say_so(unmigrated, file):
    for args in (["csv", file], ["--undo", "x"]):
        with pytest.raises(CommandError, match=r"\nRun: python manage\.py migrate"):
            run("import_hits", *args)


def find(request):
    return Article.objects.get() if request.path.startswith("/articles/") else None


def test_the_export_is_printed_or_written(buffer, article, tmp_path):
    record_hit(article, amount=3, at=MAY)
    path = tmp_path / "out.csv"

    printed = run("export_hits")
    assert printed.splitlines() == [
        "date,object,counter,hits,visitors,version 1",
        "2024-05-01,app.article:1,views,3,",
    ]
    assert run("export_hits", str(path)) == f"Wrote 1 row to {path}.\n"
    assert path.read_bytes().decode() == printed
    assert run("export_hits", str(path), first_day=datetime.date(2024, 5, 2), verbosity=0) == ""
    with pytest.raises(CommandError, match="No such file"):
        run("export_hits", str(tmp_path / "none" / "out.csv"))
    with pytest.raises(CommandError, match="Unknown counter 'likes'"):
        run("export_hits", counter="likes")


def test_an_export_without_redis_says_so_and_leaves_an_earlier_one(redis_buffer, tmp_path):
    earlier = tmp_path / "hits.csv"
    earlier.write_text("of yesterday")

    for args in ([], [str(earlier)]):
        with (
            mock.patch.object(RedisBuffer, "partitions", side_effect=BufferUnavailable("away")),
            pytest.raises(CommandError, match="away"),
        ):
            run("export_hits", *args)

    assert earlier.read_text() == "of yesterday"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("has_tqdm", [True, False])
def test_a_terminal_shows_a_bar_or_a_few_lines(
    buffer, article, file, monkeypatch, capsys, has_tqdm
):
    if not has_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    out = Terminal()

    call_command("import_hits", "csv", file, stdout=out)

    assert ("1 of 1 rows written\n" in out.getvalue()) == (not has_tqdm)
    assert ("written: 100%" in capsys.readouterr().err) == has_tqdm


def test_elsewhere_there_are_few_lines(buffer):
    out = io.StringIO()
    progress = ProgressLine(OutputWrapper(out))
    for number in range(10_000, 250_001, 10_000):
        progress("read", number, 0)
    for number in range(1, 1001):
        progress("written", number, 1000)
    progress.close()

    lines = out.getvalue().splitlines()
    assert lines[:2] == ["100,000 rows read", "200,000 rows read"]
    assert lines[2:] == [f"{n}00 of 1,000 rows written" for n in range(1, 10)] + [
        "1,000 of 1,000 rows written"
    ]


def test_the_size_of_pieces_is_that_of_a_statement():
    assert running.PIECE_SIZE == pieces.PIECE_SIZE == 5000
