"""An object whose ``__str__()`` raises is shown as "Article 7", wherever objects are named."""

from __future__ import annotations

import csv
import io

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import Correction
from django_hitcount.recording import record_hit
from tests.app.models import Article, Page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("buffer")]

REPORT = "/staff/django_hitcount/hitslot/?period=today"
CORRECTIONS = "/admin/django_hitcount/correction/"


@pytest.fixture
def article(nameless) -> Article:
    return Article.objects.create(title="Tea")


def test_a_report_names_it_beside_the_others(admin, article):
    for obj in (article, Page.objects.create(path="/coffee")):
        record_hit(obj)
    flush_hits()
    html = admin.get(REPORT).content.decode()
    file = admin.get(f"{REPORT}&csv=top").getvalue().decode("utf-8-sig")

    assert html.count(f">Article {article.pk}</a>") == 1
    names = {row["Object"] for row in csv.DictReader(io.StringIO(file, newline=""))}
    assert names == {f"Article {article.pk}", "Page object (/coffee)"}


def test_its_statistics_are_shown_and_its_hits_corrected(admin, article, caplog):
    url = f"/staff/app/article/{article.pk}/statistics/"
    data = {"counter": "views", "day": day_of().isoformat(), "amount": "3", "reason": "Lost"}
    response = admin.post(url, data, follow=True)

    assert response.redirect_chain == [(url, 302)]
    assert f"Statistics: Article {article.pk}" in response.content.decode()
    assert Correction.objects.get().amount == 3
    assert not LogEntry.objects.exists()
    assert f"The history of app.Article {article.pk} lacks a correction" in caplog.text


def test_a_correction_of_it_is_listed(admin, article, text):
    correct_hits(article, 3, day=day_of(), reason="Lost", user=User.objects.get())
    words = text(admin.get(CORRECTIONS))

    assert f"Article {article.pk} Views" in words
