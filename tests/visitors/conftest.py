"""How visitors are identified, users who log in, and sessions that cannot be read."""

from __future__ import annotations

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.test import Client

from tests.browsers import BROWSER
from tests.visitors.browsing import broken


@pytest.fixture
def identify_by(settings):
    """Set how visitors are identified."""

    def set_identities(*names, **more):
        settings.HITCOUNT = {**settings.HITCOUNT, "VISITOR_IDENTITY": names, **more}

    return set_identities


@pytest.fixture
def login(user):
    """Log the user in; returns the cookies of a new session."""

    def logged_in():
        client = Client(headers=BROWSER)
        client.force_login(user)
        return {"sessionid": client.cookies["sessionid"].value}

    return logged_in


@pytest.fixture
def session_that_breaks(monkeypatch):
    """Reading a session fails, and that is logged."""
    monkeypatch.setattr(SessionBase, "_session", property(broken))
