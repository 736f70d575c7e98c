"""How many functions of the package a hit enters: each costs a page a part of a microsecond."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.template import Context, Template

import django_hitcount
from tests.app.models import Article
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)

PACKAGE = str(Path(django_hitcount.__file__).parent)
TAG = Template("{% load hitcount %}{% hit_count article %}")
EVERY_RULE = {"repeat": "daily", "visitors": True, "per_address": 20}

INLINE = {"<listcomp>", "<setcomp>", "<dictcomp>"}
"""Parts of a function that newer versions of Python do not call."""


@contextmanager
def entered() -> Iterator[Counter[str]]:
    """Count the calls of functions of the package in the block, by file and name."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name not in INLINE:
            calls[f"{code.co_filename.removeprefix(PACKAGE)}: {code.co_qualname}"] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(("options", "most"), [({}, 43), (EVERY_RULE, 62)], ids=["plain", "rules"])
def test_hit_enters_few_functions(redis_buffer, settings, options, most):
    settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": {"views": options}}
    article = Article.objects.create(title="a")
    for visitor in (1, 2, 3):
        TAG.render(Context({"article": article, "request": request_of(visitor)}))
    article = Article.objects.get()  # As a view reads it.
    context = Context({"article": article, "request": request_of(4)})
    with entered() as calls:
        assert TAG.render(context) == "4"

    assert calls.total() <= most, "\n".join(f"{n} {name}" for name, n in calls.items())
