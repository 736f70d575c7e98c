"""
Plain values: keys, days, hits, batches; and how to group them.

Nothing here connects to a server.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import Model

from django_hitcount.counters.keys import CounterKey

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def group_items(keys: Iterable[K], items: Iterable[T]) -> dict[K, list[T]]:
    """Return the items by key. ``keys`` has the key of each item, in the same order."""
    groups: dict[K, list[T]] = {}
    for key, item in zip(keys, items, strict=True):
        groups.setdefault(key, []).append(item)
    return groups


def list_values(value: Any) -> list[Any]:
    """Return several values as a list, and one value, valid or not, as a list of it."""
    is_one = isinstance(value, Model | str) or not isinstance(value, Iterable)
    return [value] if is_one else [*value]


def restore_order(keys: Sequence[K], groups: Mapping[K, Iterable[T]]) -> list[T]:
    """Return the items of groups in the order that they had before group_items()."""
    remaining = {key: iter(group) for key, group in groups.items()}
    return [next(remaining[key]) for key in keys]


def split(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield ``items`` in pieces of ``size``. The last piece may be smaller."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def group_by_partition(keys: Iterable[CounterKey], partitions: int) -> dict[int, list[CounterKey]]:
    """Return the counters by the partition of their object."""
    keys = [*keys]
    return group_items([key.partition(partitions) for key in keys], keys)
