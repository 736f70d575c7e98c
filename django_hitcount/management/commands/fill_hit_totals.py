from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Model

from django_hitcount.db.total_columns import total_columns
from django_hitcount.maintenance.column_writing import fill_totals


class Command(BaseCommand):
    help = "Write the total of every object into its HitTotalField. May be run again at any time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "models",
            nargs="*",
            metavar="app_label.Model",
            help="models with a HitTotalField; all of them by default",
        )

    def handle(self, *, models: list[str], **options: Any) -> None:
        for model in [*map(_find_model, models)] or total_columns():
            self._fill(model)

    def _fill(self, model: type[Model]) -> None:
        objects = changed = locked = 0
        for written in fill_totals(model):
            objects += written.objects
            changed += written.changed
            locked += len(written.locked)
            if self.stdout.isatty():  # Elsewhere, each of these lines would stay.
                self.stdout.write(f"{model._meta.label}: {objects} objects", ending="\r")
        self.stdout.write(f"{model._meta.label}: {objects} objects, {changed} totals changed.")
        if locked:
            self.stdout.write(f"{locked} objects were locked; the next compact_hits writes them.")


def _find_model(label: str) -> type[Model]:
    models = {model._meta.label_lower: model for model in total_columns()}
    if label.lower() not in models:
        known = ", ".join(sorted(model._meta.label for model in total_columns())) or "none"
        raise CommandError(f"Invalid model: {label!r}. Models with a HitTotalField: {known}.")
    return models[label.lower()]
