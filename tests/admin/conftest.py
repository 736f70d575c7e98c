from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client


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
