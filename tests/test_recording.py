from __future__ import annotations

import pytest

from django_hitcount.flushing import flush
from django_hitcount.recording import record_hit
from django_hitcount.tables import HitSlot
from tests.app.models import Article

pytestmark = pytest.mark.django_db(transaction=True)


def test_hit_is_counted_and_shown(buffer):
    article = Article.objects.create(title="Tea")

    assert [record_hit(article).total for _ in range(3)] == [1, 2, 3]
    assert article.hits == 3
    flush()
    assert article.hits == 3
    assert sum(HitSlot.objects.values_list("hits", flat=True)) == 3
