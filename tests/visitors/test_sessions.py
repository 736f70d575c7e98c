"""Which sessions identify a visitor, and that reading them changes no page."""

from __future__ import annotations

import pytest

from django_hitcount.visitors import identify
from tests.visitors.browsing import ENGINES, broken, get, new_session, through_middleware

pytestmark = pytest.mark.usefixtures("nothing_fails")


@pytest.fixture(autouse=True)
def first(identify_by, settings, tmp_path):
    settings.SESSION_FILE_PATH = tmp_path
    identify_by("session", "address")


@pytest.fixture(params=ENGINES)
def engine(request, settings, db) -> str:
    settings.SESSION_ENGINE = f"django.contrib.sessions.backends.{request.param}"
    return request.param


def test_existing_session_identifies_a_visitor(engine):
    key = new_session(engine)

    assert identify(through_middleware(get(sessionid=key))) == f"session:{key}"


@pytest.mark.parametrize("key", ["forged" * 5, "x", ""])
def test_forged_session_does_not(engine, key):
    request = through_middleware(get(sessionid=key))

    assert identify(request).startswith("address:")
    assert not request.session.modified


@pytest.mark.parametrize("character", ["\0", "\U0001f36a", "\ud800", "\xe9", " ", "\x7f", "\n"])
def test_key_that_no_backend_makes_is_not_looked_for(engine, character, django_assert_num_queries):
    request = through_middleware(get(sessionid=f"{character}" + "x" * 31))

    with django_assert_num_queries(0):
        assert identify(request).startswith("address:")


def test_no_session_is_created(engine):
    request = through_middleware(get())

    assert identify(request).startswith("address:")
    assert request.session.session_key is None


def test_new_session_does_not_identify_a_visitor_yet(engine):
    request = through_middleware(get())
    request.session["basket"] = [1]

    assert identify(request).startswith("address:")
    assert request.session.session_key is None
    assert request.session.modified


@pytest.mark.parametrize("is_accessed", [False, True])
@pytest.mark.parametrize("is_modified", [False, True])
def test_page_does_not_notice(engine, is_accessed, is_modified):
    request = through_middleware(get(sessionid=new_session(engine)))
    request.session.accessed, request.session.modified = is_accessed, is_modified
    identify(request)

    assert request.session.accessed is is_accessed
    assert request.session.modified is is_modified


def test_site_without_sessions():
    assert identify(get(sessionid="x" * 32)).startswith("address:")


def test_error_is_logged_and_the_page_does_not_notice(monkeypatch, caplog):
    request = through_middleware(get(sessionid="x" * 32))
    monkeypatch.setattr(type(request.session), "load", broken)

    assert identify(request).startswith("address:")
    assert "'session' failed" in caplog.text
    assert not request.session.accessed
