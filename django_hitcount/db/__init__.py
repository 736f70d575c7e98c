"""The tables, and all SQL."""
