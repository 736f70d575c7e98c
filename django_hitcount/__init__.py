"""
Exact, cheap, sharded view counters for Django.

The functions are imported when they are first used. So settings and INSTALLED_APPS may import this
package before Django has loaded any model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_hitcount.beacon import beacon_token as beacon_token
    from django_hitcount.corrections import acorrect_hits as acorrect_hits
    from django_hitcount.corrections import correct_hits as correct_hits
    from django_hitcount.counters.hits import Hit as Hit
    from django_hitcount.counters.visitors import Visitors as Visitors
    from django_hitcount.deletion import aforget_hits as aforget_hits
    from django_hitcount.deletion import forget_hits as forget_hits
    from django_hitcount.deletion import register as register
    from django_hitcount.importing.exporting import export_hits as export_hits
    from django_hitcount.importing.running import import_hits as import_hits
    from django_hitcount.importing.running import undo_import as undo_import
    from django_hitcount.maintenance.compaction import compact_hits as compact_hits
    from django_hitcount.maintenance.flushing import flush_hits as flush_hits
    from django_hitcount.moving import amove_hits as amove_hits
    from django_hitcount.moving import move_hits as move_hits
    from django_hitcount.prefetching import aprefetch_hits as aprefetch_hits
    from django_hitcount.prefetching import prefetch_hits as prefetch_hits
    from django_hitcount.rankings import apopular as apopular
    from django_hitcount.rankings import atrending as atrending
    from django_hitcount.rankings import popular as popular
    from django_hitcount.rankings import trending as trending
    from django_hitcount.reading import aget_hits as aget_hits
    from django_hitcount.reading import aget_visitors as aget_visitors
    from django_hitcount.reading import get_hits as get_hits
    from django_hitcount.reading import get_visitors as get_visitors
    from django_hitcount.reading import refresh_hits as refresh_hits
    from django_hitcount.recording import arecord_hit as arecord_hit
    from django_hitcount.recording import arecord_hits as arecord_hits
    from django_hitcount.recording import record_hit as record_hit
    from django_hitcount.recording import record_hits as record_hits
    from django_hitcount.series import ahits_by_day as ahits_by_day
    from django_hitcount.series import ahits_by_month as ahits_by_month
    from django_hitcount.series import ahits_by_week as ahits_by_week
    from django_hitcount.series import avisitors_by_day as avisitors_by_day
    from django_hitcount.series import hits_by_day as hits_by_day
    from django_hitcount.series import hits_by_month as hits_by_month
    from django_hitcount.series import hits_by_week as hits_by_week
    from django_hitcount.series import visitors_by_day as visitors_by_day
    from django_hitcount.status import aget_flush_status as aget_flush_status
    from django_hitcount.status import aget_refused_hits as aget_refused_hits
    from django_hitcount.status import get_flush_status as get_flush_status
    from django_hitcount.status import get_refused_hits as get_refused_hits
    from django_hitcount.throttle import Throttle as Throttle

_MODULES = {
    "beacon": "beacon_token",
    "corrections": "acorrect_hits correct_hits",
    "counters.hits": "Hit",
    "counters.visitors": "Visitors",
    "deletion": "aforget_hits forget_hits register",
    "importing.exporting": "export_hits",
    "importing.running": "import_hits undo_import",
    "maintenance.compaction": "compact_hits",
    "maintenance.flushing": "flush_hits",
    "moving": "amove_hits move_hits",
    "prefetching": "aprefetch_hits prefetch_hits",
    "rankings": "apopular atrending popular trending",
    "reading": "aget_hits aget_visitors get_hits get_visitors refresh_hits",
    "recording": "arecord_hit arecord_hits record_hit record_hits",
    "series": (
        "ahits_by_day ahits_by_month ahits_by_week avisitors_by_day "
        "hits_by_day hits_by_month hits_by_week visitors_by_day"
    ),
    "status": "aget_flush_status aget_refused_hits get_flush_status get_refused_hits",
    "throttle": "Throttle",
}
"""The public names, by the module that has them. A test compares them with the imports above."""

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [*_MODULE_OF]  # noqa: PLE0604  # These are strings.


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_MODULE_OF]
