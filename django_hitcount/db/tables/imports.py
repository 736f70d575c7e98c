"""The tables of imports: what has been imported, and what each import has added."""

from __future__ import annotations

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils import timezone

from django_hitcount import conf
from django_hitcount.db.tables.hits import CounterRow, ObjectIdField, Row, unique


class Import(Row):
    """
    An import of hits from another place, see import_hits(). Deleted when it is undone.

    Whoever writes a piece of an import changes this row in the same transaction. So a piece is
    written once, however often it is tried, and by the process that has written ``runner`` last.
    """

    name = ObjectIdField(max_length=conf.IMPORT_ID_MAX_LENGTH)
    strategy = models.CharField(max_length=10)
    is_open = models.BooleanField(null=True, default=True)
    """True until all pieces are written, then NULL. So only one import is open at a time."""

    is_undone = models.BooleanField(default=False)
    """Whether an undo has begun."""

    runner = models.CharField(max_length=32)
    """A random name of the process that writes the pieces."""

    pieces = models.BigIntegerField(default=0)
    last_counter = models.JSONField(null=True)
    """The key that the last piece ends with. All days of it are written."""

    days = models.JSONField()
    """The days of each content type and counter, and how many visitors."""

    refused = models.JSONField(default=list)
    """Refused hits by day, counter and reason."""

    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True)

    KEY = ("name",)

    class Meta(Row.Meta):
        constraints = [unique("import", "name"), unique("import_open", "is_open")]


class ImportedHits(CounterRow):
    """What an import has added to a counter on one day, so that it can be undone."""

    content_type = models.ForeignKey(
        ContentType,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        # The rows of hits that are written with these ones have the constraint.
        db_constraint=False,
    )
    day = models.DateField()
    import_id = models.BigIntegerField()
    hits = models.BigIntegerField()
    """Negative if the import has replaced more hits by fewer."""

    KEY = (*CounterRow.KEY, "day", "import_id")

    class Meta(Row.Meta):
        constraints = [
            unique("importedhits", "content_type", "object_id", "counter", "day", "import_id")
        ]
