"""How reports name counters."""

from __future__ import annotations

from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy

from django_hitcount import conf

# Names of counters that most sites have. A project translates its own in its own catalog.
_KNOWN = [gettext_lazy("Views"), gettext_lazy("Downloads")]


def label_counter(counter: str) -> str:
    """Return the name of a counter for people: "file_downloads" is "File downloads"."""
    return gettext(capfirst(counter.replace("_", " ")))


def counter_choices() -> list[tuple[str, str]]:
    """Return all declared counters with their labels, "views" first."""
    return [(counter, label_counter(counter)) for counter in conf.get_config().counters]
