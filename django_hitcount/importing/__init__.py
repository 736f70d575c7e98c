"""Import hits from other places, and export them."""

from __future__ import annotations

from django_hitcount.importing.csv_files import CsvFiles, PlausibleFiles
from django_hitcount.importing.logs import LogFiles
from django_hitcount.importing.objects import Objects
from django_hitcount.importing.running import ImportSummary
from django_hitcount.importing.tables import Column, HitcountTables
from django_hitcount.importing.urls import find_object

__all__ = [
    "Column",
    "CsvFiles",
    "HitcountTables",
    "ImportSummary",
    "LogFiles",
    "Objects",
    "PlausibleFiles",
    "find_object",
]
