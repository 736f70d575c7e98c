from __future__ import annotations

import pytest

from django_hitcount.reports import label_object
from tests.app.models import Article


@pytest.mark.parametrize("text", ["", " \n", None, 5])
def test_object_without_a_text_is_named_after_its_key(monkeypatch, text):
    monkeypatch.setattr(Article, "__str__", lambda self: text)

    assert label_object(Article(pk=7)) == "Article 7"


def test_other_objects_have_their_text(monkeypatch):
    monkeypatch.setattr(Article, "__str__", lambda self: " Tea ")

    assert label_object(Article(pk=7)) == " Tea "
