"""Visitors: bots, identities, addresses and hashes."""
