"""A site with permissions for each object: no page of the admin links to one that is refused."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User

from django_hitcount.corrections import correct_hits
from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.recording import record_hit
from tests.admin.sites import ArticleAdmin
from tests.app.models import Article, Page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis_buffer")]

CORRECTIONS = "/admin/django_hitcount/correction/"
REPORT = "/staff/django_hitcount/hitslot/"


@pytest.fixture
def articles(hides) -> list[Article]:
    """Two articles, the second of which is hidden."""
    shown, hidden = Article.objects.bulk_create(Article(title=title) for title in ("Tea", "Rum"))
    for article in (shown, hidden):
        record_hit(article)
    flush_hits()
    hides(hidden)
    return [shown, hidden]


def links(response) -> set[str]:
    """The addresses of articles that a page links to."""
    found = re.findall(r'href="(/\w+/app/article/\d+/\w+/)', response.content.decode())
    return {str(link) for link in found}


def statistics(article: Article) -> str:
    return f"/staff/app/article/{article.pk}/statistics/"


def test_the_report_names_what_it_does_not_link(admin, articles):
    page = admin.get(f"{REPORT}?period=today")

    assert links(page) == {statistics(articles[0])}
    assert str(articles[1]) in page.content.decode()
    assert admin.get(statistics(articles[1])).status_code == 403


def test_the_column_of_hits_links_what_may_be_viewed(admin, articles, cells):
    page = admin.get("/staff/app/article/")

    assert {link for link in links(page) if "statistics" in link} == {statistics(articles[0])}
    assert cells(page) == ["1", "1"]


def test_corrections_link_what_may_be_viewed(admin, articles):
    for article in articles:
        correct_hits(article, 3, day=day_of(), reason="Lost", user=User.objects.get())
    page = admin.get("/staff/django_hitcount/correction/")

    assert links(page) == {statistics(articles[0])}
    assert all(str(article) in str(page.content) for article in articles)


def test_who_may_not_see_the_list_gets_no_link_to_it(admin, articles, monkeypatch):
    def may_view(self, request, obj=None):
        return obj is not None

    for name in ("has_view_permission", "has_change_permission"):
        monkeypatch.setattr(ArticleAdmin, name, may_view)
    page = admin.get(statistics(articles[0]))

    assert admin.get("/staff/app/article/").status_code == 403
    assert page.status_code == 200
    assert 'href="/staff/app/article/"' not in page.content.decode()


@pytest.mark.parametrize("address", [REPORT, "/staff/app/article/", CORRECTIONS])
def test_asking_costs_no_query_for_each_object(allow, address, django_assert_max_num_queries):
    for number in range(30):
        article = Article.objects.create(title=str(number))
        record_hit(article)
        record_hit(Page.objects.create(path=str(number)))
        correct_hits(article, 3, day=day_of(), reason="Lost", user=User(username="ann"))
    flush_hits()
    client = allow("view_hitslot", "view_article", "view_page", "view_correction")
    client.get(address)

    with django_assert_max_num_queries(12):
        assert client.get(address).status_code == 200
