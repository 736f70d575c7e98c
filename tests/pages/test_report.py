"""The report and the admin show pages, and the whole site with its visitors."""

from __future__ import annotations

import csv
import re

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from django_hitcount import flush_hits, record_hit
from django_hitcount.counters.days import day_of
from django_hitcount.pages.models import Page, WholeSite
from tests.app.models import Article
from tests.app.models import Page as OtherPage
from tests.browsers import BROWSER
from tests.pages.site import counts

pytestmark = pytest.mark.django_db(transaction=True)

REPORT = "/admin/django_hitcount/hitslot/?period=today"


@pytest.fixture
def editor(counted, browser):
    counted(views={"visitors": True})
    for path in ("/tea/", "/tea/", "/mate/"):
        browser.get(path)
    browser.get("/mate/", REMOTE_ADDR="203.0.113.7")
    flush_hits()
    client = Client()
    client.force_login(User.objects.create_superuser("editor"))
    return client


def rows(editor, table: str, model: str = "") -> list[list[str]]:
    response = editor.get(f"{REPORT}&csv={table}&model={model}")
    return [*csv.reader(response.getvalue().decode().splitlines())][1:]


def test_pages_are_a_model_of_the_report(editor):
    found = rows(editor, "top", "hitcount_pages.page")

    assert sorted((row[1], row[2], row[4]) for row in found) == [
        ("/mate/", "page", "2"),
        ("/tea/", "page", "2"),
    ]


def test_models_with_the_same_name_are_told_apart(editor):
    record_hit(OtherPage.objects.create(path="/tea"))
    flush_hits()

    assert editor.get(REPORT).context["choice"].fields["model"].choices[1:] == [
        ("app.page", "Pages (App)"),
        ("hitcount_pages.page", "Pages (Pages)"),
        ("hitcount_pages.wholesite", "Whole sites (Pages)"),
    ]


def test_no_hit_counts_twice_in_all_models(editor):
    """A page that shows an article, and the site that has the page, are counted apart."""
    today = str(day_of())
    assert rows(editor, "days") == [[today, "4", *rows(editor, "days")[0][2:]]]
    record_hit(Article.objects.create(title="Tea"), amount=3)
    flush_hits()

    assert rows(editor, "days")[0][:2] == [today, "3"]
    assert rows(editor, "days", "hitcount_pages.page")[0][:2] == [today, "4"]
    assert rows(editor, "days", "hitcount_pages.wholesite")[0][:2] == [today, "4"]
    assert len(rows(editor, "top")) == 1


def test_counter_of_pages_alone_shows_them_among_all_models(editor, counted):
    counted(views={}, counters={"reads": {}}, counter="reads")
    record_hit(Article.objects.create(title="Tea"))
    Client(headers=BROWSER).get("/tea/")
    flush_hits()

    assert rows(editor, "days")[0][:2] == [str(day_of()), "1"]
    reads = {"model": "&counter=reads"}
    assert rows(editor, "days", **reads)[0][:2] == [str(day_of()), "1"]
    assert [row[1] for row in rows(editor, "top", **reads)] == ["/tea/"]


def test_visitors_of_the_site_are_found_from_the_report(editor):
    report = editor.get(f"{REPORT}&model=hitcount_pages.wholesite").content.decode()
    (address,) = {
        *re.findall(r'href="(/admin/hitcount_pages/wholesite/0/statistics/[^"]*)"', report)
    }
    assert "The whole site" in report
    statistics = editor.get(address.replace("&amp;", "&")).context["statistics"]

    assert statistics["hits"] == 4
    assert statistics["rows"][0]["visitors"][0] == 2
    assert statistics["visitors_chart"] is not None


def test_admin_lists_pages_and_deletes_them(editor):
    page = Page.objects.get(path="/tea/")
    Page.objects.create(path="/tea/\u202e")
    changelist = editor.get("/admin/hitcount_pages/page/?q=tea").content.decode()

    assert ">/tea/</a>" in changelist
    assert ">/tea/%E2%80%AE</a>" in changelist
    assert f"/admin/hitcount_pages/page/{page.pk}/statistics/" in changelist
    assert editor.get("/admin/hitcount_pages/page/add/").status_code == 403
    assert editor.get(f"/admin/hitcount_pages/page/{page.pk}/change/").status_code == 200
    assert editor.get("/admin/hitcount_pages/wholesite/").status_code == 200
    editor.post(f"/admin/hitcount_pages/page/{page.pk}/delete/", {"post": "yes"})
    assert "/tea/" not in counts()
    assert editor.post("/admin/hitcount_pages/wholesite/0/delete/").status_code == 403


def test_whole_site_can_be_read_before_it_is_counted(db):
    assert WholeSite().hits == 0
    assert not WholeSite.objects.exists()


@pytest.mark.parametrize("field", ["AutoField", "BigAutoField"])
def test_models_and_migrations_agree(settings, field):
    settings.DEFAULT_AUTO_FIELD = f"django.db.models.{field}"

    call_command("makemigrations", "hitcount_pages", check=True, dry_run=True, verbosity=0)


def test_migrations_run_back_and_forth():
    call_command("migrate", "hitcount_pages", "zero", verbosity=0)
    assert "hitcount_pages_page" not in connection.introspection.table_names()
    call_command("migrate", "hitcount_pages", verbosity=0)
    assert "hitcount_pages_page" in connection.introspection.table_names()
