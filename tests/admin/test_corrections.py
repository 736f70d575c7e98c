from __future__ import annotations

import datetime

import pytest
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, connection
from django.test import Client
from django.utils.formats import date_format

from django_hitcount import get_hits
from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.models import Correction
from django_hitcount.recording import record_hit
from tests.app.models import Article

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.fixture
def article() -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture
def url(article) -> str:
    return f"/staff/app/article/{article.pk}/statistics/"


def form(amount=-2, **fields) -> dict[str, object]:
    today = day_of().isoformat()
    return {"counter": "views", "day": today, "amount": amount, "reason": "A bot", **fields}


def test_hits_are_taken_back(buffer, admin, article, url, text):
    record_hit(article, amount=5)
    flush_hits()
    record_hit(article)

    response = admin.post(url, form(amount=-6), follow=True)

    assert response.redirect_chain == [(url, 302)]
    assert get_hits(article) == 0
    today = date_format(day_of())
    assert f"Corrected Views of {today} by \u22126: A bot" in text(response)
    assert "\u22126 A bot admin" in text(response)


def test_hits_are_added(admin, article, url, text):
    response = admin.post(url, form(amount=1204, counter="downloads"), follow=True)

    assert (article.hits, Correction.objects.get().amount) == (0, 1204)
    assert f"Corrected Downloads of {date_format(day_of())} by +1,204: A bot" in text(response)
    assert "Downloads +1,204" in text(response)


def test_the_history_of_the_object_has_the_correction(admin, article, url):
    admin.post(url, form(amount=1))

    entry = LogEntry.objects.get()
    assert (entry.get_edited_object(), entry.user.username) == (article, "admin")
    assert entry.change_message == f"Corrected Views of {date_format(day_of())} by +1: A bot"
    history = admin.get(f"/staff/app/article/{article.pk}/history/").content.decode()
    assert "Corrected Views of" in history


def test_the_page_keeps_its_days(admin, url):
    response = admin.post(f"{url}?period=90&counter=downloads", form(amount=1))

    assert response["Location"] == f"{url}?period=90&counter=downloads"


def test_the_form_begins_with_today_and_the_chosen_counter(admin, url):
    html = admin.get(url, {"counter": "downloads"}).content.decode()

    assert '<option value="downloads" selected>' in html
    assert f'value="{day_of()}"' in html


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"reason": ""}, "reason", "This field is required."),
        ({"reason": "  "}, "reason", "This field is required."),
        ({"reason": "x" * 201}, "reason", "at most 200 characters"),
        ({"amount": ""}, "amount", "This field is required."),
        ({"amount": "0"}, "amount", "Enter a number other than 0."),
        ({"amount": "1.5"}, "amount", "Enter a whole number."),
        ({"amount": "-6"}, "amount", "Only 5 hits were counted on"),
        ({"amount": str(10**10)}, "amount", "less than or equal to 1000000000"),
        ({"amount": "-1", "counter": "downloads"}, "amount", "Only 0 hits were counted on"),
        ({"counter": "likes"}, "counter", "Select a valid choice"),
        ({"day": "x"}, "day", "Enter a valid date."),
        ({"day": "2999-01-01"}, "day", "This day is in the future."),
        ({"day": ""}, "day", "This field is required."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_error_is_said_at_its_field_and_nothing_is_written(
    buffer, admin, article, url, fields, field, message
):
    record_hit(article, amount=5)

    response = admin.post(url, form(**fields))

    assert response.status_code == 200
    assert [*response.context["form"].errors] == [field]
    assert message in response.context["form"].errors[field][0]
    assert message in response.content.decode()
    assert article.hits == 5
    assert not Correction.objects.exists()
    assert not LogEntry.objects.exists()


def test_tomorrow_is_in_the_future_by_the_days_of_the_site(admin, url, settings):
    settings.TIME_ZONE = "Pacific/Kiritimati"
    tomorrow = day_of() + datetime.timedelta(days=1)

    assert admin.post(url, form(amount=1)).status_code == 302
    assert admin.post(url, form(amount=1, day=tomorrow.isoformat())).status_code == 200


def test_only_the_permission_gives_the_form(allow, article, url):
    ann = allow("view_article", "change_article", "view_correction")

    assert b'id="hitcount-correction"' not in ann.get(url).content
    assert ann.post(url, form(amount=3)).status_code == 403
    assert article.hits == 0


def test_with_the_permission_and_a_view_of_the_object(allow, article, url):
    ann = allow("view_article", "add_correction")

    assert b'id="hitcount-correction"' in ann.get(url).content
    assert ann.post(url, form(amount=3)).status_code == 302
    assert Correction.objects.get().made_by == "ann"


def test_the_permission_alone_is_not_enough(allow, article, url):
    assert allow("add_correction").post(url, form(amount=3)).status_code == 403
    assert article.hits == 0


def test_an_anonymous_user_is_sent_to_the_login(client, article, url):
    assert client.post(url, form(amount=3))["Location"].startswith("/staff/login/")
    assert article.hits == 0


def test_a_form_of_another_site_is_rejected(admin, article, url):
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = admin.cookies

    assert browser.post(url, form(amount=3)).status_code == 403
    assert article.hits == 0


def test_requests_in_transactions(redis_buffer, admin, article, url, settings):
    """With ATOMIC_REQUESTS, the running total changes after the COMMIT."""
    from django.db import connection

    record_hit(article, amount=5)
    assert get_hits(article) == 5
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        assert admin.post(url, form(amount=-5)).status_code == 302
        assert admin.post(url, form(amount=-1)).status_code == 200
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False

    assert get_hits(article) == 0


def test_the_reason_is_escaped(admin, url):
    html = admin.post(url, form(amount=1, reason="<b>x</b>"), follow=True).content.decode()

    assert "<b>x</b>" not in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html


def test_no_more_than_fifty_corrections_are_shown(admin, url, text):
    for number in range(51):
        admin.post(url, form(amount=1, reason=f"Reason {number}."))
    admin.get(url)  # Shows the messages.

    words = text(admin.get(url))

    assert "Reason 50." in words
    assert "Reason 0." not in words
    assert "Older corrections are not shown here." in words


# The history, and errors of its database


@pytest.fixture
def broken_history(monkeypatch):
    def fail(self, *args, **kwargs):
        raise DatabaseError("The disk is full")

    monkeypatch.setattr(LogEntry, "save", fail)


def test_without_its_history_no_correction_is_written(admin, article, url, broken_history):
    """So that the form can be sent again."""
    with pytest.raises(DatabaseError, match="The disk is full"):
        admin.post(url, form(amount=3))

    assert article.hits == 0
    assert not Correction.objects.exists()


@pytest.mark.django_db(transaction=True, databases="__all__")
@pytest.mark.parametrize("is_atomic", [False, True])
def test_a_history_in_another_database_does_not_fail_the_page(
    admin, article, url, broken_history, settings, monkeypatch, caplog, is_atomic
):
    """The correction is committed by then: who saw an error would send the form again."""
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", is_atomic)

    assert admin.post(url, form(amount=3)).status_code == 302
    assert (article.hits, Correction.objects.get().amount) == (3, 3)
    assert f"The history of app.Article {article.pk} lacks a correction" in caplog.text


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_a_history_in_another_database_has_the_correction(admin, url, settings):
    settings.DATABASE_ROUTERS = ["tests.routers.Elsewhere"]
    admin.post(url, form(amount=1))

    assert LogEntry.objects.get().change_message.startswith("Corrected Views of")
