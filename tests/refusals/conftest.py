"""The setting REFUSALS, and another user."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User


@pytest.fixture
def refuse(settings):
    """Set the refusals, each by its path, or by its path and its options."""

    def set_refusals(*refusals, **more):
        items = [
            item if isinstance(item, str) else {"NAME": item[0], "OPTIONS": item[1]}
            for item in refusals
        ]
        settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": items, **more}

    return set_refusals


@pytest.fixture
def other(db) -> User:
    return User.objects.create(username="bob", pk=6)
