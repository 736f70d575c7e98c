"""Servers that are away, slow or locked: how long a page waits, and what is kept meanwhile."""
