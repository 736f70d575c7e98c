"""
Lengths of columns, and other limits that no setting changes.

Changing the length of a column needs a migration.
"""

from __future__ import annotations

COUNTER_MAX_LENGTH = 50
"""Columns ``counter``: long enough for any name, and short since it is part of unique keys."""

REFUSAL_MAX_LENGTH = 50
"""Column ``refusal``: the names of refusals follow the rule for the names of counters."""

OBJECT_ID_MAX_LENGTH = 255
"""Columns ``object_id``: the longest unique CharField that Django allows on MySQL."""

DATABASE_ALIAS_MAX_LENGTH = 255
"""Columns that name a database: Django sets no limit, and aliases are far shorter."""

VISITOR_KEY_MAX_LENGTH = 40
"""Columns ``visitor_key``: the id of a VisitorKey has 22 characters."""

ADMISSION_NAME_MAX_LENGTH = 200
"""Column ``name`` of an admission: a prefix and the name of a throttle."""

THROTTLE_NAME_MAX_LENGTH = 150
"""Characters of the name of a throttle: leaves room for the prefix of an admission."""

ADDRESS_NAME_LENGTH = 43
"""Column ``name`` of a counted address: a date, a colon and 32 hexadecimal digits."""

GENERATION_MAX_LENGTH = 100
"""Column ``generation``: a run id, a colon and 32 hexadecimal digits are 73 characters."""

REASON_MAX_LENGTH = 200
"""Column ``reason`` of a correction: a sentence."""

USERNAME_MAX_LENGTH = 150
"""Column ``made_by``: the length of a username in django.contrib.auth. Longer names are cut."""

RUN_ID_MAX_LENGTH = 40
"""Column ``run_id``: Redis uses 40 hexadecimal digits."""

MOST_PARTITIONS = 1024
"""
The largest value of PARTITIONS. A flush looks at this number of partitions, because PARTITIONS may
have been larger before. It does so in one round trip.
"""
