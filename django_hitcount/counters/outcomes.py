"""The result of recording a hit, and the reasons for refusing one that have fixed names."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

ADDRESS_LIMIT = "address_limit"
"""The client's address has reached the limit that the counter's ``per_address`` sets."""


CALLER = "caller"
"""The callable that was passed to record_hit() as ``refuse`` refused the hit."""


NO_REQUEST = "no_request"
"""A template was rendered without a request, so there is no visitor."""


REPEAT = "repeat"
"""The visitor has been counted already, and the counter's ``repeat`` rule forbids another hit."""


UNAVAILABLE = "unavailable"
"""Neither the buffer nor the database is available."""


UNSAVED = "unsaved"
"""A page shows an object that is not saved, as in a preview."""


REASONS: dict[str, str | Promise] = {
    ADDRESS_LIMIT: _("Enough hits of the client's address have been counted."),
    CALLER: _("The view that recorded the hit said so."),
    NO_REQUEST: _(
        "The template has no request: list the context processor "
        "django.template.context_processors.request."
    ),
    REPEAT: _("The visitor has been counted already."),
    UNAVAILABLE: _("Neither the buffer nor the database takes hits."),
    UNSAVED: _("The object is not saved: a preview."),
}
"""A sentence about each reserved name, for reports."""


RESERVED = tuple(REASONS)
"""Names that a refusal in HITCOUNT["REFUSALS"] must not have."""


class Hit(NamedTuple):
    """The result of record_hit()."""

    counted: bool
    """
    Whether the hit was counted.

    Also True while the hit waits for the COMMIT of a transaction. The buffer finds out after the
    COMMIT whether it is a repeat. After a rollback it is not counted.
    """

    refusal: str | None
    """Why the hit was not counted: the name of a refusal. None if it was counted."""

    total: int | None
    """
    The total of the counter, with this hit; None if it cannot be read now.

    In a transaction, it does not include the other hits that wait for the same COMMIT.
    """
