from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from typing import Any

from django.core.management.base import CommandError
from django.db.models import Model

from django_hitcount.db.total_columns import total_columns
from django_hitcount.maintenance.column_writing import fill_totals
from django_hitcount.management import HitCountCommand, ProgressLine, count_of


class Command(HitCountCommand):
    help = "Write the total of every object into its HitCountField. May be run again at any time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "models",
            nargs="*",
            metavar="app_label.Model",
            help="models with a HitCountField; all of them by default",
        )

    def handle(self, *, models: list[str], verbosity: int, **options: Any) -> None:
        for model in [*map(_find_model, models)] or total_columns():
            self._fill(model, verbosity)

    def _fill(self, model: type[Model], verbosity: int) -> None:
        objects = changed = locked = 0
        with closing(ProgressLine(self.stdout)) as progress:
            for written in fill_totals(model):
                objects += written.objects
                changed += written.changed
                locked += len(written.locked)
                if verbosity:
                    progress("filled", objects, 0)
        if not verbosity:
            return
        seen = count_of(objects, "object", "objects")
        totals = count_of(changed, "total", "totals")
        self.stdout.write(f"{model._meta.label}: {seen}, {totals} changed.")
        if locked:
            found = count_of(locked, "object was locked and is", "objects were locked and are")
            self.stdout.write(f"{found} left to the next compact_hits.")


def _find_model(label: str) -> type[Model]:
    models = {model._meta.label_lower: model for model in total_columns()}
    if label.lower() not in models:
        known = ", ".join(sorted(model._meta.label for model in models.values())) or "none"
        raise CommandError(
            f"Invalid model: {label!r}. Counted models with a HitCountField: {known}."
        )
    return models[label.lower()]
