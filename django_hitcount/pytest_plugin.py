"""Fixtures for pytest. It imports Django only when a test uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from django_hitcount.testing import (
        AsyncBrowserClient,
        AsyncBrowserRequestFactory,
        BrowserClient,
        BrowserRequestFactory,
    )


@pytest.fixture
def browser_client() -> BrowserClient:
    """A test client whose hits count."""
    from django_hitcount.testing import BrowserClient

    return BrowserClient()


@pytest.fixture
def async_browser_client() -> AsyncBrowserClient:
    """A test client for async tests whose hits count."""
    from django_hitcount.testing import AsyncBrowserClient

    return AsyncBrowserClient()


@pytest.fixture
def browser_rf() -> BrowserRequestFactory:
    """A request factory whose requests come from a browser."""
    from django_hitcount.testing import BrowserRequestFactory

    return BrowserRequestFactory()


@pytest.fixture
def async_browser_rf() -> AsyncBrowserRequestFactory:
    """The same for async views."""
    from django_hitcount.testing import AsyncBrowserRequestFactory

    return AsyncBrowserRequestFactory()
