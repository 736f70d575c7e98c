"""
What another project does with the same settings and Redis, and a database of its own.

A program. Its arguments: what to do, and the content type id that articles have there, too.
"""

from __future__ import annotations

import sys

import django

django.setup()

from django.contrib.contenttypes.models import ContentType  # noqa: E402 - apps must be loaded

from django_hitcount.maintenance.compaction import compact  # noqa: E402
from django_hitcount.maintenance.flushing import flush_hits  # noqa: E402
from django_hitcount.throttle import Throttle  # noqa: E402
from tests.app.models import Article  # noqa: E402


def have_content_type_id(wanted: int) -> None:
    of_articles = ContentType.objects.get_for_model(Article)
    if of_articles.pk != wanted:
        ContentType.objects.filter(pk=wanted).delete()
        ContentType.objects.filter(pk=of_articles.pk).update(model="another")
        ContentType.objects.create(pk=wanted, app_label="app", model="article")
        ContentType.objects.clear_cache()


def use_article(*, deletes: bool) -> None:
    """Count and flush hits of an article, and delete it, or not."""
    article = Article.objects.create(pk=1)
    shown = [article.record_hit().total, article.hits]
    if deletes:
        article.delete()
    flush_hits()
    compact()
    shown += [found.hits for found in Article.objects.all()]
    assert shown == ([1, 1] if deletes else [1, 1, 1])
    assert Throttle("mail", seconds=60).admit()


if __name__ == "__main__":
    what, content_type_id = sys.argv[1:]
    if what == "flush":
        flush_hits()
    else:
        have_content_type_id(int(content_type_id))
        use_article(deletes=what == "delete")
