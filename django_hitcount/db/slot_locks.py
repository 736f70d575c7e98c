"""Find rows of slots that another session has locked, before writing them."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connections, models

from django_hitcount.counters.hits import NewHits
from django_hitcount.db import locks, slots
from django_hitcount.db.tables import DailyHitSlot, HitSlot, RefusedHitSlot, SlotRow


def check_locks(hits: Iterable[NewHits], *, slot: int, using: str) -> None:
    """
    Raise OperationalError if another session has locked a row that ``hits`` go to in ``slot``.

    For MySQL, which can only limit how long a SELECT waits. Costs two statements there, and one
    more if hits are refused. Does nothing on other databases.
    """
    if not locks.is_mysql(connections[using]):
        return
    counting = [hit for hit in hits if not hit.refusal]
    refused = [hit for hit in hits if hit.refusal]
    _check_table(HitSlot, slots.match_counters({hit.key for hit in counting}), slot, using)
    for day in sorted({hit.day for hit in counting}):
        keys = slots.match_counters({hit.key for hit in counting if hit.day == day})
        _check_table(DailyHitSlot, keys & models.Q(day=day), slot, using)
    for hit in refused:
        one = models.Q(day=hit.day, counter=hit.key.counter, refusal=hit.refusal)
        _check_table(RefusedHitSlot, one, slot, using)


def _check_table(model: type[SlotRow], rows: models.Q, slot: int, using: str) -> None:
    found = model._default_manager.using(using).filter(rows, slot=slot)
    [*found.order_by(*model.KEY).select_for_update(nowait=True).values_list("pk")]
