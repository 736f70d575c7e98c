"""Who is asking: see identity.py for how visitors are identified, hashing.py for what is kept."""

from __future__ import annotations

from django_hitcount.visitors.identity import address, browser, cookie, session, user

__all__ = ["address", "browser", "cookie", "session", "user"]
