"""
The admin: reports of hits, and what a ModelAdmin inherits to show them.

Of the tables, it shows the corrections, and the report in place of the slots. The others are for
flushing, compacting and forgetting: nobody can read anything in their rows that the reports do not
say.
"""

from __future__ import annotations

from django.contrib import admin

from django_hitcount.admin.corrections import CorrectionAdmin
from django_hitcount.admin.objects import HitCountAdmin
from django_hitcount.admin.report import HitReportAdmin
from django_hitcount.db.tables import Correction, HitSlot

__all__ = ["CorrectionAdmin", "HitCountAdmin", "HitReportAdmin"]

admin.site.register(HitSlot, HitReportAdmin)
admin.site.register(Correction, CorrectionAdmin)
