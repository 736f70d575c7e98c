"""Lengths of columns, and other limits that no setting changes."""

from __future__ import annotations

DATABASE_ALIAS_MAX_LENGTH = 255
"""Length of the columns that name a database: a change needs a migration."""


OBJECT_ID_MAX_LENGTH = 255
"""Length of the ``object_id`` columns: a change needs a migration."""


REFUSAL_MAX_LENGTH = 50
"""Length of the ``refusal`` column: a change needs a migration."""


VISITOR_KEY_MAX_LENGTH = 40
"""Length of the ``visitor_key`` columns: a change needs a migration."""


ADMISSION_NAME_MAX_LENGTH = 200
"""Length of the ``name`` of an admission: a change needs a migration."""


ADDRESS_NAME_LENGTH = 43
"""Length of the ``name`` of a counted address: a change needs a migration."""


THROTTLE_NAME_MAX_LENGTH = 150
"""Characters of the name of a throttle: admissions put a few before it."""


MOST_PARTITIONS = 1024
"""The largest PARTITIONS. A flush looks at as many, since the number may have been changed."""


GENERATION_MAX_LENGTH = 100
"""Length of the ``generation`` column: a change needs a migration."""


RUN_ID_MAX_LENGTH = 40
"""Length of the ``run_id`` column: a change needs a migration."""
