"""
Visitors: bots, identities, addresses and hashes.

See bots.py for how bots are recognised, identity.py for how visitors are identified, addresses.py
for how a client's address is read, and hashing.py for what is stored of a visitor.
"""

from __future__ import annotations

from django_hitcount.visitors.identity import address, browser, cookie, session, user

__all__ = ["address", "browser", "cookie", "session", "user"]
