"""The tables of a report as CSV: what the page shows, in numbers without separators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

from django.utils.text import slugify
from django.utils.translation import gettext as _

from django_hitcount.reports.csv import write_csv
from django_hitcount.reports.rows import Days, ObjectRow, RefusedRow
from django_hitcount.reports.selection import Selection


def days_csv(hits: Days, before: Days) -> Iterator[str]:
    """Write the hits of each day, beside those of the same day of the period before."""
    days = zip_longest(hits.items(), before.items(), fillvalue=())
    return write_csv(
        [_("Day"), _("Hits"), _("Day of the period before"), _("Hits before")],
        [(*day, *day_before) for day, day_before in days],
    )


def top_csv(rows: Iterable[ObjectRow]) -> Iterator[str]:
    """Write the objects with the most hits."""
    return write_csv(
        [
            *(_("Rank"), _("Object"), _("Model"), _("Primary key"), _("Hits")),
            *(_("Share in percent"), _("Visitors"), _("Hits before"), _("Change")),
        ],
        (
            (*_object_cells(row), _decimal(row.share), row.visitors, row.before, row.more)
            for row in rows
        ),
    )


def changes_csv(rows: Iterable[ObjectRow]) -> Iterator[str]:
    """Write the objects whose hits rise, or those whose hits fall."""
    return write_csv(
        [
            *(_("Rank"), _("Object"), _("Model"), _("Primary key"), _("Hits")),
            *(_("Hits before"), _("Change")),
        ],
        ((*_object_cells(row), row.before, row.more) for row in rows),
    )


def refused_csv(rows: Iterable[RefusedRow]) -> Iterator[str]:
    """Write the refused hits by reason."""
    return write_csv(
        [_("Refusal"), _("Reason"), _("Hits"), _("Share in percent")],
        [(row.refusal, row.reason, row.hits, _decimal(row.share)) for row in rows],
    )


def file_name(table: str, selection: Selection) -> str:
    """Return the name of a file: the table, the counter and model if chosen, and the days."""
    period, chosen = selection.period, selection.parameters
    counter, model = chosen.get("counter", ""), chosen.get("model", "").replace(".", "-")
    # slugify() leaves ASCII letters, digits, "_" and single hyphens. A model may have any letters.
    name = slugify(f"hits-{table}-{counter}-{model}-{period.first_day}-{period.last_day}")
    return f"{name}.csv"


def _object_cells(row: ObjectRow) -> tuple[int, str, str, str, int]:
    return row.number, row.name, row.model_name, row.key[1], row.hits


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"
