"""Pieces of an import: each is written, or taken back, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models

from django_hitcount.buffers import get_buffer
from django_hitcount.counters.imports import Row
from django_hitcount.db import imports
from django_hitcount.db.tables import Import
from django_hitcount.importing.existing import make_named_rows

PIECE_SIZE = 5000
"""Rows that one transaction writes: many enough that the COMMITs take little time, and few enough
to hold locks for a fraction of a second. Pages that meet one write into another slot. Some more are
written if the last counter has further days."""


def write_piece(made: Import, rows: Sequence[Row]) -> list[Row]:
    """
    Write what the tables lack of some rows, in one transaction. Return it.

    Before that, makes the rows of named objects among them.
    """
    make_named_rows({row.key[:2] for row in rows})
    missing: list[Row] = []

    def write(slot: int) -> None:
        if imports.note(made, last_counter=[*rows[-1].key]):
            missing[:] = imports.find_missing(rows, made.strategy)
            imports.write_piece(made, missing, slot=slot)
        get_buffer().pause_totals([row.key for row in missing])

    imports.transact(write)
    made.pieces += 1
    return missing


def take_piece(made: Import, added: models.QuerySet[Any, Any], after: int) -> list[imports.Added]:
    """Take the next rows of ``added`` out of the tables, in one transaction. Return them."""
    taken: dict[int, imports.Added] = {}

    def take(slot: int) -> None:
        rows = imports.take_piece(made, added, after, PIECE_SIZE, slot=slot)
        # If the answer to a COMMIT was lost, an earlier try has taken other rows.
        taken.update({row.pk: row for row in rows})
        get_buffer().pause_totals([*map(imports.key_of, rows)])

    imports.transact(take)
    return [taken[pk] for pk in sorted(taken)]
