"""The task and the command compact_hits: each step runs, whatever happens to the others."""

from __future__ import annotations

import datetime
import secrets
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from django_hitcount import deletion, tasks
from django_hitcount.db.tables import (
    Admission,
    CountedAddress,
    DeletedObject,
    HitSlot,
    VisitorSalt,
)
from django_hitcount.maintenance import compaction, describe_error, forgetting
from django_hitcount.maintenance.compaction import compact
from django_hitcount.recording import record_hit
from tests.app.models import Article

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def old_rows(settings) -> None:
    """A row of each table that must go, and hits to compact, without Redis."""
    settings.HITCOUNT = {**settings.HITCOUNT, "REDIS": None}
    made_at = timezone.now() - datetime.timedelta(days=100)
    VisitorSalt.objects.create(period="old", salt=secrets.token_bytes(32), made_at=made_at)
    Admission.objects.create(name="old", admitted_at=1, expires_at=2)
    CountedAddress.objects.create(name="2026-03-01:a", hits=1)
    article, deleted = [Article.objects.create(title=title) for title in ("Tea", "Milk")]
    for obj in (article, deleted):
        record_hit(obj)
    with mock.patch.object(deletion, "forget_now"):
        deleted.delete()


def left() -> set[str]:
    """What is still to do."""
    tables = (VisitorSalt, Admission, CountedAddress)
    found = {model.__name__ for model in tables if model.objects.exists()}
    if HitSlot.objects.filter(slot__gt=0).exists():
        found.add("slots")
    if DeletedObject.objects.filter(is_forgotten=False).exists():
        found.add("deleted")
    return found


def test_compaction_deletes_no_salts(old_rows):
    compact()
    assert left() == {"VisitorSalt", "Admission", "CountedAddress", "deleted"}


@pytest.mark.parametrize(
    "run", [tasks.compact_hits, lambda: call_command("compact_hits")], ids=["task", "command"]
)
def test_compact_hits_does_it_all(old_rows, run):
    run()
    assert left() == set()


@pytest.mark.parametrize(
    ("step", "doing", "kept"),
    [
        ((compaction, "prune_salts"), "deleting old salts", "VisitorSalt"),
        ((compaction, "prune_admissions"), "deleting old admissions", "Admission"),
        ((compaction, "prune_addresses"), "deleting old addresses", "CountedAddress"),
        ((compaction, "compact"), "compacting", "slots"),
        ((forgetting, "forget_deleted"), "forgetting deleted objects", "deleted"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_step_that_fails_keeps_no_other_from_running(old_rows, step, doing, kept):
    with (
        mock.patch.object(*step, side_effect=OperationalError("locked")),
        pytest.raises(ExceptionGroup) as raised,
    ):
        tasks.compact_hits()

    assert left() == {kept}
    assert describe_error(raised.value).splitlines()[1:] == [f"locked (while {doing})"]


def test_salts_go_first(old_rows):
    def look(**kwargs: object) -> None:
        assert not VisitorSalt.objects.exists()
        raise OperationalError("locked")

    with mock.patch.object(compaction, "prune_admissions", look), pytest.raises(ExceptionGroup):
        compaction.compact_hits()


def test_command_says_what_went_wrong(old_rows):
    with (
        mock.patch.object(compaction, "prune_salts", side_effect=OperationalError("locked")),
        mock.patch.object(compaction, "compact", side_effect=OperationalError("a deadlock")),
        pytest.raises(CommandError) as raised,
    ):
        call_command("compact_hits")

    assert str(raised.value).splitlines()[1:] == [
        "locked (while deleting old salts)",
        "a deadlock (while compacting)",
    ]


def test_command_describes_a_group_that_somebody_else_has_raised(old_rows):
    group = ExceptionGroup(
        "the index", [ValueError("away"), ExceptionGroup("x", [ValueError("y")])]
    )
    with (
        mock.patch.object(compaction, "compact", side_effect=group),
        pytest.raises(CommandError) as raised,
    ):
        call_command("compact_hits")

    assert str(raised.value).splitlines()[1:] == [
        "the index (while compacting)",
        "away",
        "x",
        "y",
    ]
