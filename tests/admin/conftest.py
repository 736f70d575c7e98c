from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from django_hitcount import reports as labels
from tests.admin.sites import ArticleAdmin
from tests.app.models import Article


@pytest.fixture(autouse=True)
def addresses(settings) -> None:
    settings.ROOT_URLCONF = "tests.admin.sites"


@pytest.fixture
def admin(client: Client, db) -> Client:
    """The browser of a user who may do everything."""
    client.force_login(User.objects.create_superuser("admin"))
    return client


@pytest.fixture
def allow(client: Client, db) -> Callable[..., Client]:
    """The browser of a member of the staff with some permissions."""

    def allow(*permissions: str) -> Client:
        user = User.objects.create(username="ann", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client.force_login(user)
        return client

    return allow


@pytest.fixture
def text() -> Callable[[object], str]:
    """The words of a page."""
    return lambda response: re.sub(r"(<[^>]*>|\s)+", " ", response.content.decode())


@pytest.fixture
def cells() -> Callable[[object], list[str]]:
    """The numbers in the column of hits, from top to bottom."""

    def cells(response) -> list[str]:
        found = re.findall(r'class="hitcount-total"[^>]*>([^<]*)<', response.content.decode())
        return [str(cell) for cell in found]

    return cells


@pytest.fixture
def hides(monkeypatch) -> Callable[..., None]:
    """Let the ModelAdmin of articles hide some of them from everybody, object by object."""

    def hides(*articles: Article) -> None:
        def may_view(self, request, obj=None):
            return obj not in articles

        for name in ("has_view_permission", "has_change_permission"):
            monkeypatch.setattr(ArticleAdmin, name, may_view)

    return hides


@pytest.fixture
def nameless(monkeypatch, caplog) -> Iterator[None]:
    """Articles whose ``__str__()`` raises. One line of the log says so."""

    def fail(self):
        raise ValueError("no author")

    monkeypatch.setattr(Article, "__str__", fail)
    labels._log_failure.cache_clear()
    yield
    records = caplog.get_records("call")
    failures = [record for record in records if "__str__() of app.Article" in record.getMessage()]
    assert [str(record.exc_info[1]) for record in failures] == ["no author"]
