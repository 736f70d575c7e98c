"""The names of keys: which databases share them."""

from __future__ import annotations

import datetime
import re
from unittest import mock

import pytest
from django.db import connections

from django_hitcount.buffers.redis import keys
from django_hitcount.buffers.redis.keys import PartitionKeys, RunKeys, run_keys, throttle_key
from django_hitcount.buffers.redis.record_call import pack_hit
from django_hitcount.counters.hits import NewHits
from django_hitcount.counters.keys import CounterKey
from django_hitcount.db.tables import hits_alias
from django_hitcount.outages.missed_records import CommandId

RUN = "0123456789ab"


@pytest.fixture
def database(monkeypatch):
    """Change settings of the database of the counts."""
    options = connections[hits_alias()].settings_dict

    def change(**changed):
        for name, value in changed.items():
            monkeypatch.setitem(options, name, value)

    return change


def prefix(database, **options) -> str:
    database(**options)
    return keys.database_prefix()


def test_form(database):
    found = prefix(database, NAME="site")

    assert re.fullmatch("hitcount:[0-9a-f]{8}:", found)
    assert throttle_key("x") == f"{found}throttle:x"


def test_other_names_have_other_keys(database):
    names = ["site", "test_site", "site_gw0", "Site", "site ", "", "/srv/db.sqlite3"]

    assert len({prefix(database, NAME=name) for name in names}) == len(names)


def test_calls_are_packed_for_each_name(database):
    hit = NewHits(CounterKey(1, "1", "views"), datetime.date(2026, 1, 1), 1)
    for name in ("site", "test_site"):
        found = prefix(database, NAME=name)

        assert found.encode() in pack_hit(hit, CommandId("7", 1, RUN)).packed


def test_name_may_be_a_path(database, tmp_path):
    path = tmp_path / "db.sqlite3"

    assert prefix(database, NAME=path) == prefix(database, NAME=str(path))


def test_host_and_user_do_not_matter(database):
    """Hits that wait are found again when the database moves."""
    found = prefix(database, NAME="site")

    assert prefix(database, HOST="elsewhere", PORT="1", USER="ann", PASSWORD="x") == found


@pytest.mark.parametrize(
    "name", [":memory:", "file:memorydb_default?mode=memory&cache=shared", "file::memory:"]
)
def test_database_in_memory_belongs_to_its_process(database, name):
    """The names are the same in all processes."""
    found = prefix(database, NAME=name)
    assert prefix(database, NAME=name) == found

    keys._prefix_of.cache_clear()
    with mock.patch.object(keys, "THIS_PROCESS", "another"):
        assert prefix(database, NAME=name) != found
    keys._prefix_of.cache_clear()


def test_file_does_not_belong_to_a_process(database):
    found = prefix(database, NAME="/srv/memory.sqlite3")

    keys._prefix_of.cache_clear()
    with mock.patch.object(keys, "THIS_PROCESS", "another"):
        assert prefix(database, NAME="/srv/memory.sqlite3") == found
    keys._prefix_of.cache_clear()


def test_all_names_begin_with_the_database_and_the_partition(database):
    database(NAME="site")
    names = run_keys(3, RUN)
    all_names = [
        *names.for_record,
        names.malformed,
        *names.scratch,
        names.sketches,
        names.total("x"),
    ]
    start = f"{keys.database_prefix()}{{3}}:"

    assert {name[: len(start)] for name in all_names} == {start}
    assert {name for name in keys.all_runs() if name.startswith(start)} == {names.runs}


def test_nothing_of_another_database_is_remembered(database):
    """Tests of a project change the name while its process runs."""
    found = []
    for name in ("site", "test_site", "site"):
        database(NAME=name)
        found.append((run_keys(3, RUN).pending, keys.all_runs()[3], RunKeys(3, RUN).pending))

    first, second, third = found
    assert first == third
    assert first[0] == first[2]
    assert not {*first} & {*second}


def test_runs_are_apart_and_partitions_are_apart(database):
    database(NAME="site")
    names = [run_keys(p, run) for p in (1, 2, 11) for run in (RUN, "unknown")]
    hashes = [name for own in names for name in (own.pending, own.batch, own.sequence, own.epoch)]

    assert len({*hashes}) == len(hashes)
    assert run_keys(1, RUN) is names[0]
    assert {own.runs for own in names} == {PartitionKeys(p).runs for p in (1, 2, 11)}
