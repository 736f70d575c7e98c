"""Django runs a function twice if one capture of callbacks is within another."""

from __future__ import annotations

from django.test import TestCase

from django_hitcount import get_hits, record_hit
from tests.app.models import Article


class NestedCaptures(TestCase):
    def test_hit_counts_once(self):
        article = Article.objects.create(title="Tea")
        capture = self.captureOnCommitCallbacks
        with capture(execute=True), capture(execute=True):
            record_hit(article)

        assert get_hits(article) == 1
