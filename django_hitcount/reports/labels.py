"""How reports name counters and objects."""

from __future__ import annotations

import logging
from functools import cache

from django.db.models import Model
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy

from django_hitcount import conf

logger = logging.getLogger("django_hitcount")

# Names of counters that most sites have. A project translates its own in its own catalog.
_KNOWN = [gettext_lazy("Views"), gettext_lazy("Downloads")]


def label_counter(counter: str) -> str:
    """Return the name of a counter for people: "file_downloads" is "File downloads"."""
    return gettext(capfirst(counter.replace("_", " ")))


def counter_choices() -> list[tuple[str, str]]:
    """Return all declared counters with their labels, "views" first."""
    return [(counter, label_counter(counter)) for counter in conf.get_config().counters]


def label_object(obj: Model) -> str:
    """Return the text of an object; "Article 7" if it has none, or if its ``__str__()`` raises."""
    try:
        text = str(obj)
    except Exception:  # noqa: BLE001 - what a project writes must not take a page down
        _log_failure(obj._meta.model)
        text = ""
    return text if text.strip() else label_key(str(obj._meta.verbose_name), str(obj.pk))


def label_key(model_name: str, key: str) -> str:
    """Return the name of an object of which only the model and the primary key are known."""
    return f"{capfirst(model_name)} {key}"


@cache
def _log_failure(model: type[Model]) -> None:
    """Log the error that is handled, once in a process: a list may have many such objects."""
    logger.exception(
        "The __str__() of %s failed, and the object is named after its primary key",
        model._meta.label,
    )
