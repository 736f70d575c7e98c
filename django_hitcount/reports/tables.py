"""The tables of a report as CSV: what the page shows, in numbers without separators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.utils.text import slugify
from django.utils.translation import gettext as _

from django_hitcount.reports.csv import write_csv
from django_hitcount.reports.rows import ObjectRow, Report


def days_csv(report: Report) -> str:
    """Return the hits of each day, beside those of the same day of the period before."""
    days = zip(report.hits.items(), report.before.items(), strict=True)
    return write_csv(
        [_("Day"), _("Hits"), _("Day of the period before"), _("Hits before")],
        [(day, hits, earlier, before) for (day, hits), (earlier, before) in days],
    )


def top_csv(report: Report) -> str:
    """Return the objects with the most hits."""
    return write_csv(
        [*_object_header(), _("Hits"), _("Share in percent"), _("Visitors")],
        [(*_object_cells(row), row.hits, _decimal(row.share), row.visitors) for row in report.top],
    )


def trending_csv(report: Report) -> str:
    """Return the objects whose hits are recent."""
    return write_csv(
        [*_object_header(), _("Score")],
        [(*_object_cells(row), _decimal(row.score)) for row in report.trending],
    )


def refused_csv(report: Report) -> str:
    """Return the refused hits by reason."""
    return write_csv(
        [_("Refusal"), _("Reason"), _("Hits"), _("Share in percent")],
        [(row.refusal, row.reason, row.hits, _decimal(row.share)) for row in report.refused],
    )


TABLES: Mapping[str, Callable[[Report], str]] = {
    "days": days_csv,
    "top": top_csv,
    "trending": trending_csv,
    "refused": refused_csv,
}
"""By the name in an address."""


def file_name(table: str, report: Report) -> str:
    """Return the name of a file: the table, the counter and model if chosen, and the days."""
    period, chosen = report.selection.period, report.selection.parameters
    counter, model = chosen.get("counter", ""), chosen.get("model", "").replace(".", "-")
    # slugify() leaves ASCII letters, digits, "_" and single hyphens. A model may have any letters.
    name = slugify(f"hits-{table}-{counter}-{model}-{period.first_day}-{period.last_day}")
    return f"{name}.csv"


def _object_header() -> list[str]:
    return [_("Rank"), _("Object"), _("Model"), _("Primary key")]


def _object_cells(row: ObjectRow) -> tuple[int, str, str, str]:
    return row.number, row.name, row.model_name, row.key[1]


def _decimal(number: float | None) -> str:
    return "" if number is None else f"{number:.1f}"
