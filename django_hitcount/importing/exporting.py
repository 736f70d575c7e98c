"""Export the hits of each object, counter and day as CSV."""

from __future__ import annotations

import csv
import datetime
from typing import IO

from django.contrib.contenttypes.models import ContentType

from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters.days import check_ends
from django_hitcount.counters.keys import check_counter
from django_hitcount.db.sql import spool_rows
from django_hitcount.db.tables import hits_alias
from django_hitcount.importing.csv_files import COLUMNS, VERSION
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reports.rows import defuse

# One statement sees one state of the tables: rows that are folded meanwhile are not counted twice.
SELECT = """
SELECT content_type_id, object_id, counter, CAST(day AS CHAR(10)), SUM(hits), SUM(visitors) FROM (
    SELECT content_type_id, object_id, counter, day, hits, 0 AS visitors
    FROM django_hitcount_dailyhitslot
    UNION ALL SELECT content_type_id, object_id, counter, day, 0, count
    FROM django_hitcount_dailyvisitors
    UNION ALL SELECT content_type_id, object_id, counter, day, 0, 1
    FROM django_hitcount_seenvisitor
) counted
WHERE day BETWEEN %(first_day)s AND %(last_day)s AND (counter = %(counter)s OR %(counter)s = '')
GROUP BY content_type_id, object_id, counter, day
ORDER BY content_type_id, object_id, counter, day
"""


def export_hits(
    file: IO[str],
    *,
    counter: str | None = None,
    first_day: datetime.date | None = None,
    last_day: datetime.date | None = None,
) -> int:
    """
    Write the hits of each object, counter and day as CSV, which import_hits() reads. Return the
    number of rows.

    The columns are ``date``, ``object`` (as ``app.model:pk``), ``counter``, ``hits`` and
    ``visitors``, which is empty for a counter without visitors. Behind them, the header has the
    version of the format. An apostrophe before a text that a spreadsheet would run as a formula is
    left out again when the file is imported.

    Args:
        file: a file opened for text, with ``newline=""``.
        counter: the name of a counter; all counters by default.
        first_day: leave out days before this one.
        last_day: leave out days after this one.

    With Redis, flushes first, and raises what flush_hits() raises. Costs a query, whose result
    waits in a temporary file, and one for the content types.
    """
    if counter is not None:
        check_counter(counter)
    first_day, last_day = check_ends(first_day, last_day)
    if get_buffer().keeps_hits:
        flush_hits()
    types = ContentType.objects.using(hits_alias()).all()
    labels = {found.pk: f"{found.app_label}.{found.model}" for found in types}
    with_visitors = {name for name, of in get_config().counters.items() if of.visitors}
    params = {
        "first_day": first_day.isoformat(),
        "last_day": last_day.isoformat(),
        "counter": counter or "",
    }
    writer = csv.writer(file)
    writer.writerow([*COLUMNS, VERSION])
    written = 0
    for rows in spool_rows(SELECT, params):
        lines = [
            (
                day,
                defuse(f"{labels.get(content_type_id, content_type_id)}:{object_id}"),
                name,
                hits,
                visitors if name in with_visitors else "",
            )
            for content_type_id, object_id, name, day, hits, visitors in rows
            if hits or visitors  # What was taken back leaves rows of 0 hits.
        ]
        writer.writerows(lines)
        written += len(lines)
    return written
