"""Requests as the script of a cached page sends them."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from django_hitcount.beacon import beacon_token
from tests.browsers import BROWSER

VIEW_ID = "a1b2c3d4-0"

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}


def send(hit=(), show=(), *, view_id=VIEW_ID, client: Client | None = None, **headers: str) -> Any:
    """Send tokens, or objects to count, and return the response."""
    tokens = [of if isinstance(of, str) else beacon_token(of) for of in hit]
    return send_text(
        json.dumps({"id": view_id, "hit": tokens, "show": [*show]}), client=client, **headers
    )


def send_text(text: str | bytes, *, client: Client | None = None, **headers: str) -> Any:
    """Send a body as it is. An argument ``Sec_Fetch_Site`` is the header Sec-Fetch-Site."""
    sent = {**BROWSER, **SAME_ORIGIN, **{name.replace("_", "-"): headers[name] for name in headers}}
    return (client or Client(enforce_csrf_checks=True)).post(
        "/seen/", text, content_type="text/plain;charset=UTF-8", headers=sent
    )
