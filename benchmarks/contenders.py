"""Ways to count hits of one object, for many writers at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import connection, connections, transaction
from django.db.models import Sum
from django_redis import get_redis_connection

from benchmarks import databases, statements
from benchmarks.app.models import Article, DailyTotal, OwnTotal, Row, Total
from django_hitcount.buffers import get_buffer
from django_hitcount.conf import get_config
from django_hitcount.counters.days import day_of
from django_hitcount.counters.hits import NewHits
from django_hitcount.db.counter_keys import counter_key
from django_hitcount.models import DailyHitSlot, HitSlot

VIEW_SECONDS = 0.005
"""How long a view keeps its transaction open after it counted."""

Write = Callable[[], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """A way to count."""

    name: str
    writer: Callable[[Article], Write]
    """Makes the function that counts one hit."""

    total: Callable[[Article], int]
    """Reads what was counted, to check that every write counted."""

    buffer: str = "database"


def one_row(article: Article) -> Write:
    return _single([_add_one(Total, article.pk)])


def one_slot(article: Article) -> Write:
    """Write one row each time, but not always the same one."""
    return _single([total for total, _ in _slot_upserts(article)])


def two_rows(article: Article) -> Write:
    return _pair([(_add_one(Total, article.pk), _add_one(DailyTotal, article.pk))])


def two_slots(article: Article) -> Write:
    return _pair(_slot_upserts(article))


def own_row(article: Article) -> Write:
    """Give each writer a row of its own: the maximum of the machine."""
    return _single([_add_one(OwnTotal, OwnTotal.objects.create(article=article).pk)])


def _single(choices: Sequence[str]) -> Write:
    cursor = connection.cursor()
    return lambda: cursor.execute(random.choice(choices))


def _pair(choices: Sequence[tuple[str, str]]) -> Write:
    alias = databases.current()
    cursor = connections[alias].cursor()

    def write() -> None:
        with transaction.atomic(using=alias):
            for sql in random.choice(choices):
                cursor.execute(sql)

    return write


def _add_one(model: type[Row], pk: int) -> str:
    key = model._meta.pk.column
    return f"UPDATE {model._meta.db_table} SET hits = hits + 1 WHERE {key} = {pk}"


def _slot_upserts(article: Article) -> list[tuple[str, str]]:
    """For each slot, the two statements that write a hit into it, with their values."""
    key, day = counter_key(article, counter="views"), day_of()
    return [
        (
            _fill_in_values(statements.upserts(HitSlot, [(*key, slot, 1)])),
            _fill_in_values(statements.upserts(DailyHitSlot, [(*key, day, slot, 1)])),
        )
        for slot in range(1, get_config().slots + 1)
    ]


def _fill_in_values(upserts: Sequence[statements.Statement]) -> str:
    (sql, values), *_ = upserts
    return sql % tuple(f"'{value}'" for value in values)


def buffered(article: Article) -> Write:
    """Do what record_hit() does, except reading the total."""
    buffer, hits = get_buffer(), [NewHits(counter_key(article, counter="views"), day_of(), 1)]
    return lambda: buffer.record(hits)


def hincrby(article: Article) -> Write:
    client = get_redis_connection("hitcount")
    return lambda: client.hincrby("benchmark", str(article.pk), 1)


def in_view(writer: Callable[[Article], Write]) -> Callable[[Article], Write]:
    """Count at the start of a view that goes on for a while, all in one transaction."""

    def slow_writer(article: Article) -> Write:
        count = writer(article)

        def view() -> None:
            with transaction.atomic():
                count()
                time.sleep(VIEW_SECONDS)

        return view

    return slow_writer


def recorded(article: Article) -> Write:
    return lambda: article.record_hit()


def in_row(article: Article) -> int:
    return Total.objects.get(pk=article.pk).hits


def in_own_rows(article: Article) -> int:
    rows = OwnTotal.objects.filter(article=article)
    return rows.aggregate(hits=Sum("hits"))["hits"] or 0


def in_hash(article: Article) -> int:
    return int(get_redis_connection("hitcount").hget("benchmark", str(article.pk)) or 0)


def in_slots(article: Article) -> int:
    return article.hits


OWN_ROW = Contender(name="a row for each writer", writer=own_row, total=in_own_rows)
ONE_ROW = Contender(name="one row", writer=one_row, total=in_row)
ONE_SLOT = Contender(name="slots", writer=one_slot, total=in_slots)
TWO_ROWS = Contender(name="one row in each of two tables", writer=two_rows, total=in_row)
TWO_SLOTS = Contender(name="slots in two tables", writer=two_slots, total=in_slots)
DATABASE = Contender(name="DatabaseBuffer", writer=buffered, total=in_slots)
HINCRBY = Contender(name="bare HINCRBY", writer=hincrby, total=in_hash)
REDIS = Contender(name="RedisBuffer", writer=buffered, total=in_slots, buffer="redis")
VIEW_ROW = Contender(name="5 ms view: one row", writer=in_view(one_row), total=in_row)
VIEW_DATABASE = Contender(
    name="5 ms view: record_hit(), DatabaseBuffer",
    writer=in_view(recorded),
    total=in_slots,
)
VIEW_REDIS = Contender(
    name="5 ms view: record_hit(), RedisBuffer",
    writer=in_view(recorded),
    total=in_slots,
    buffer="redis",
)
ALL = (
    OWN_ROW,
    ONE_ROW,
    ONE_SLOT,
    TWO_ROWS,
    TWO_SLOTS,
    DATABASE,
    HINCRBY,
    REDIS,
    VIEW_ROW,
    VIEW_DATABASE,
    VIEW_REDIS,
)
