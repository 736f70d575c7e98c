"""CSV files: what export_hits() writes, import_hits() reads."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_hitcount import (
    export_hits,
    flush_hits,
    forget_hits,
    get_hits,
    get_visitors,
    import_hits,
    record_hit,
)
from django_hitcount.db.tables import DailyHitSlot, Import
from django_hitcount.exceptions import InvalidArgument
from django_hitcount.importing import CsvFiles
from django_hitcount.maintenance.compaction import compact_hits
from django_hitcount.models import Counter as NamedCounter
from django_hitcount.pages.models import WholeSite
from django_hitcount.reports.rows import defuse, restore
from tests.app.models import Article, Page, Photo, Review, Small
from tests.visiting import visit

MAY = datetime.date(2024, 5, 1)
JUNE = datetime.date(2024, 6, 1)
FORMULA = re.compile(r"""^[\t\r\n]|(?:^|(?<=[;\t\r\n]))[\s"]*[=+@\uff1d\uff0b\uff0d\uff20-]""")
HEADER = "date,object,counter,hits,visitors,version 1\r\n"


def export(**options) -> str:
    file = io.StringIO(newline="")
    export_hits(file, **options)
    return file.getvalue()


@pytest.fixture
def write(tmp_path):
    def write(text, name="hits.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return CsvFiles([path])

    return write


@pytest.mark.django_db(transaction=True)
def test_the_export_has_a_row_for_each_object_counter_and_day(buffer, redis):
    article, page = Article.objects.create(), Page.objects.create(path="a, b;=c")
    record_hit(article, amount=3, at=MAY)
    record_hit(article, amount=4, at=JUNE, counter="downloads")
    record_hit(page, at=JUNE)
    compact_hits()
    record_hit(page, at=JUNE)

    header, *rows = csv.reader(export().splitlines())

    assert header == ["date", "object", "counter", "hits", "visitors", "version 1"]
    assert sorted(rows) == [
        ["2024-05-01", f"app.article:{article.pk}", "views", "3", ""],
        ["2024-06-01", f"app.article:{article.pk}", "downloads", "4", ""],
        ["2024-06-01", "app.page:a, b;'=c", "views", "2", ""],
    ]
    of_may = csv.reader(export(last_day=MAY).splitlines())
    assert [row[3] for row in of_may] == ["hits", "3"]
    assert export(counter="downloads", first_day=JUNE).count("\n") == 2
    with pytest.raises(InvalidArgument, match="Unknown counter 'likes'"):
        export(counter="likes")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_compacted", [True, False])
def test_an_export_can_be_imported_elsewhere(rule, write, is_compacted):
    rule(visitors=True)
    objs = [
        *(Article.objects.create(), Small.objects.create(), Photo.objects.create()),
        *(Page.objects.create(path=path) for path in ("/a:b", "=1+1", "\n;=ü", "'=x", " ", "a,b")),
        Review.objects.create(),
        NamedCounter("newsletter"),
        WholeSite(),
    ]
    for number, obj in enumerate(objs, 1):
        visit(obj, [1, 2])
        record_hit(obj, amount=number, at=MAY)
    if is_compacted:
        compact_hits()
    text = export()
    totals, visitors = get_hits(objs), get_visitors(objs, days=1)
    assert set(visitors.values()) == {2}
    NamedCounter.objects.all().delete()
    for obj in objs:
        forget_hits(obj)
    flush_hits()
    DailyHitSlot.objects.all().delete()
    for obj in objs:
        vars(obj._state).pop("hitcount_numbers", None)
    assert set(get_hits(objs).values()) == {0}

    done = import_hits(write(text))

    assert done.problems == 0
    assert get_hits(objs) == totals
    assert get_visitors(objs, days=1) == visitors
    assert sorted(export().splitlines()) == sorted(text.splitlines())
    assert NamedCounter.objects.popular(1)[0].hits == totals[NamedCounter("newsletter")]


@given(st.text(alphabet="'=+-@;\t\r\n \"a\uff1d"))
def test_a_defused_text_is_no_formula_and_can_be_read_back(text):
    assert restore(defuse(text)) == text
    assert not FORMULA.search(defuse(text))


@pytest.mark.django_db(transaction=True)
def test_columns_may_be_in_any_order_and_some_may_be_missing(buffer, redis, write):
    article = Article.objects.create()
    source = write(f"\ufeffhits, object ,date\n3,app.Article:{article.pk},2024-05-01\n\n")

    assert import_hits(source).hits == 3
    assert get_hits(article, first_day=MAY, last_day=MAY) == 3


@pytest.mark.django_db(transaction=True)
def test_empty_lines_are_no_problem_and_count_as_lines(buffer, redis, write):
    done = import_hits(write(HEADER + "\n\n2024-05-01,app.article:x,views,3,\n\n"))

    assert [text.split(":")[0] for text in done.shown_problems] == ["hits.csv, line 4"]


@pytest.mark.django_db(transaction=True)
def test_files_may_be_compressed_and_several(buffer, redis, tmp_path):
    article = Article.objects.create()
    line = f"2024-05-01,app.article:{article.pk},views,3,\n"
    (tmp_path / "a.csv").write_text(HEADER + line)
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress((HEADER + line + line).encode()))

    done = import_hits(CsvFiles([tmp_path / "a.csv", tmp_path / "b.csv.gz"]))

    assert re.fullmatch(r"csv a\.csv b\.csv\.gz [0-9a-f]{8}", done.import_id)
    assert get_hits(article) == 9


def test_names_and_contents_of_files_become_an_id_that_differs(tmp_path):
    files = [tmp_path / f"access-2024-05-{day:02}.csv.gz" for day in range(1, 31)]
    for file in files:
        file.write_text("same")

    first, second = CsvFiles(files).name, CsvFiles(files[:-1]).name
    files[-1].write_text("other")
    third = CsvFiles(files).name

    assert first.startswith("csv access-2024-05-01.csv.gz access-2024-05-02.csv.gz")
    assert len(first) == len(second) == 169
    assert len({first, second, third}) == 3


@pytest.mark.django_db(transaction=True)
def test_hits_that_were_taken_back_are_not_exported(buffer, redis):
    article = Article.objects.create()
    record_hit(article, amount=3, at=datetime.date(2024, 5, 1))
    record_hit(article, amount=-3, at=datetime.date(2024, 5, 1))
    file = io.StringIO()

    assert export_hits(file) == 0
    assert len(file.getvalue().splitlines()) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2024-05-01,app.article:999,views,3,", "unknown object app.article:999"),
        ("2024-05-01,app.article:x,views,3,", "invalid primary key 'x' of app.article"),
        ("2024-05-01,app.article:1" + "0" * 20 + ",views,3,", "invalid primary key '1000"),
        ("2024-05-01,django_hitcount.counter:A B,views,3,", "unknown object django_hitcount.c"),
        ("2024-05-01,app.photo:12,views,3,", "invalid primary key '12' of app.photo"),
        ("2024-05-01,app.nothing:1,views,3,", "unknown object 'app.nothing:1', not app.model:pk"),
        ("2024-05-01,5,views,3,", "unknown object '5', not app.model:pk"),
        ("2024-05-01,app.article:1,likes,3,", "unknown counter 'likes'"),
        ("2024-05-01,app.article:1,views,many,", "invalid hits 'many', not a whole number"),
        ("2024-05-01,app.article:1,views,,", "invalid hits '', not a whole number"),
        ("2024-05-01,app.article:1,views,1,1.5", "invalid visitors '1.5', not a whole number"),
        ("2024-05-01,app.article:1,views,1,-1", "visitors not from 0 to 1,000,000,000,000: -1"),
        (
            "2024-05-01,app.article:1,views,1" + "0" * 99 + ",",
            "more than 1,000,000,000,000 hits: 1",
        ),
        ("2024-05-01,app.article:1,views,1,204,,3", "the line has more cells than the header"),
        ("2024-05-01,app.page:\x1b[2J\u202ex,views,3,", r"unknown object app.page:\x1b[2J\u202ex"),
        ("01.05.2024,app.article:1,views,3,", "invalid date '01.05.2024', not like 2024-02-29"),
        ("2999-05-01,app.article:1,views,3,", "day 2999-05-01 is after"),
        ("2024-05-01,app.article:1", "the line has too few columns"),
        ("2024-05-01,app.page:" + "x" * 256 + ",views,3,", "invalid primary key 'xxx"),
    ],
    ids=lambda value: "",
)
def test_a_line_with_a_problem_is_named(buffer, redis, write, line, problem):
    article = Article.objects.create(pk=1)

    done = import_hits(write(HEADER + "2024-05-01,app.article:1,views,3,\n" + line + "\n"))

    assert get_hits(article) == 3
    assert done.problems == 1
    assert done.shown_problems[0].startswith("hits.csv, line 3: ")
    assert problem in done.shown_problems[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "date,object,hits,version 2\n",
            "has version 2, and this release of",
        ),
        ("day,object,hits\n", "lacks date. It needs the columns date, object, hits"),
        ("", "the header '' lacks date, object, hits"),
        ("date,object,hits,hits\n", "the header 'date,object,hits,hits' has hits twice. Remove"),
        ("date,object,hits,counter,counter\n", "has counter twice. Remove"),
        ("date;object;hits\n", "the columns date, object, hits, separated by commas"),
        (
            'date,object,hits,note\n2024-05-01,app.article:1,3,"\n2024-05-02,app.article:1,4,\n',
            "Cannot read .*hits.csv, line 3: unexpected end of data",
        ),
        (b"\x1f\x8b nonsense", "lacks date, object, hits"),
    ],
)
def test_a_file_of_another_format_is_an_error(write, text, message):
    with pytest.raises(InvalidArgument, match=message):
        import_hits(write(text))
    assert not Import.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(InvalidArgument, match=r"Cannot read .*No such file"):
        import_hits(CsvFiles([tmp_path / "none.csv"]))
    (tmp_path / "bad.csv.gz").write_text("not compressed")
    with pytest.raises(InvalidArgument, match=r"Cannot read .*bad\.csv\.gz"):
        import_hits(CsvFiles([tmp_path / "bad.csv.gz"]))
    (tmp_path / "broken.csv.gz").write_bytes(gzip.compress(b"")[:10] + b"\xff" * 20)
    with pytest.raises(InvalidArgument, match=r"Cannot read .*broken\.csv\.gz"):
        import_hits(CsvFiles([tmp_path / "broken.csv.gz"]))
    (tmp_path / "long.csv").write_text("date,object,hits\n" + "x" * 200_000)
    with pytest.raises(InvalidArgument, match=r"Cannot read .*long\.csv.*field larger"):
        import_hits(CsvFiles([tmp_path / "long.csv"]))


@pytest.mark.django_db(transaction=True)
def test_of_an_unknown_object_the_first_row_is_listed(buffer, redis, write):
    article = Article.objects.create()
    lines = [f"2024-05-01,app.article:{article.pk},views,1,\n"] * 8
    lines += ["2024-05-01,app.page:z,views,1,\n"] * 2
    lines += [f"2024-05-01,app.page:{number:02},views,x,\n" for number in range(15)]
    lines += [f"2024-05-01,app.page:{number:02},views,1,\n" for number in range(15, 0, -1)]
    lines += ["2024-05-02,app.page:z,views,1,\n"]

    done = import_hits(write(HEADER + "".join(lines)))

    assert get_hits(article) == 8
    assert done.problems == 33
    assert done.shown_problems[:2] == [
        f"hits.csv, line {number}: invalid hits 'x', not a whole number" for number in (12, 13)
    ]
    assert [text.split(":")[0] for text in done.shown_problems] == [
        f"hits.csv, line {number}" for number in [*range(12, 27), 10, *range(27, 31)]
    ]


@pytest.mark.django_db(transaction=True)
def test_a_pipe_needs_an_id_since_it_can_be_read_once(buffer, redis):
    article, line = Article.objects.create(), "date,object,hits\n2024-05-01,app.article:%s,3\n"
    pipes = []
    for _ in range(2):
        end, writer = os.pipe()
        os.write(writer, (line % article.pk).encode())
        os.close(writer)
        pipes.append(end)
    unnamed, named = (CsvFiles([f"/dev/fd/{end}"]) for end in pipes)

    with pytest.raises(InvalidArgument, match=r"Cannot read /dev/fd/.* twice.*name the id"):
        import_hits(unnamed)
    assert import_hits(named, import_id="piped").hits == 3
    assert get_hits(article) == 3
    for end in pipes:
        os.close(end)


@pytest.mark.django_db(transaction=True)
def test_a_file_may_have_a_name_that_is_no_text(buffer, redis, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.csv")
    path.write_text("date,object,hits\n2024-05-01,app.article:9,3\n")

    done = import_hits(CsvFiles([path]))

    assert done.import_id.startswith(r"csv \udcff.csv ")
    assert done.shown_problems == [r"\udcff.csv, line 2: unknown object app.article:9"]


def test_a_single_path_is_an_error(tmp_path):
    for path in ("hits.csv", tmp_path / "hits.csv"):
        with pytest.raises(InvalidArgument, match="Pass a list of files"):
            CsvFiles(path)


@pytest.mark.django_db(transaction=True)
def test_a_key_in_another_case_is_another_object(buffer, redis, write):
    """Whether or not the database finds the one by the other."""
    page = Page.objects.create(path="/Tea")

    done = import_hits(write("date,object,hits\n2024-05-01,app.page:/tea,3\n"))

    assert (done.objects, done.problems, get_hits(page)) == (0, 1, 0)
