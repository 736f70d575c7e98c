"""``{% bare_hit %}``: the least that a tag with a round trip costs."""

from __future__ import annotations

from django import template
from django_redis import get_redis_connection

from benchmarks.app.models import Article

register = template.Library()


@register.simple_tag
def bare_hit(article: Article) -> int:
    """Add 1 to a field of a Redis hash, with the client of django-redis, and print it."""
    return get_redis_connection("hitcount").hincrby("bare", article.pk, 1)
