"""What the actors do. The objects share a partition, unless a scenario has two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from django_hitcount.maintenance.compaction import compact
from django_hitcount.maintenance.flushing import flush_hits
from django_hitcount.reading import get_hits
from django_hitcount.recording import record_hits
from tests.app.models import Article
from tests.laws.schedules.processes import ask, pass_time

OBJECTS = 2
FIRST, SECOND = range(OBJECTS)


def articles() -> list[Article]:
    """Return the objects, as they are read from a database."""
    return [Article.from_db("default", ["id", "title", "author"], [n, "", ""]) for n in (1, 2)]


KEYS = tuple(str(obj.pk) for obj in articles())


def record(*chosen: int) -> None:
    """Record a hit on some objects, with one call, and tell what it returned."""
    objs = articles()
    ask("begin", chosen)
    hits = record_hits([objs[n] for n in chosen])
    told = [(n, hit.counted, hit.total) for n, hit in zip(chosen, hits, strict=True)]
    ask("told", tuple(told))


def read(chosen: int) -> None:
    """Read the total of an object, and tell it."""
    ask("begin", ())
    ask("told", ((chosen, False, get_hits(articles()[chosen])),))


def one_hit() -> None:
    record(FIRST)


def two_hits() -> None:
    """The second one when a breaker lets calls through again."""
    record(FIRST)
    pass_time(2.0)
    record(FIRST)


def hits_on_both() -> None:
    record(FIRST, SECOND)


def two_reads() -> None:
    read(FIRST)
    read(FIRST)


def nothing() -> None:
    """Redis and the tables are empty."""


def warm_up() -> None:
    """Redis knows the scripts, the totals and a generation; the ledger knows a batch."""
    record(FIRST)
    flush_hits()
    read(FIRST)


def read_all() -> tuple[int, ...]:
    """Read the totals of all objects."""
    objs = articles()
    totals = get_hits(objs)
    return tuple(totals[obj] for obj in objs)


ALL_FAULTS = frozenset(
    {"away", "crash", "die", "evict", "flushall", "late", "lost", "restart", "rewind"}
)
"""As in faults.py. Redis restarts and crashes without a loss; with "rewind", it also goes back to
earlier states. A scenario with fewer faults gets to schedules that cost more."""

LOSSLESS = ALL_FAULTS - {"evict", "flushall", "rewind"}


@dataclass(frozen=True)
class Scenario:
    """Actors, by name, and how far to go."""

    name: str
    actors: Mapping[str, Callable[[], object]]
    setup: Callable[[], object] = warm_up
    clocks: Mapping[str, float] = field(default_factory=dict)
    """By how many seconds the clocks of some actors are apart."""

    most_faults: int = 2
    most_cost: int = 5
    """The most switches and faults together."""

    faults: Collection[str] = ALL_FAULTS
    options: Mapping[str, object] = field(default_factory=dict)
    """Settings."""


TWO_PARTITIONS = {"PARTITIONS": 2}
"""The objects are then in different ones."""

EVERYONE = {
    "writer": two_hits,
    "page": hits_on_both,
    "flusher": flush_hits,
    "flusher 2": flush_hits,
    "reader": two_reads,
}

SCENARIOS: Sequence[Scenario] = (
    Scenario("a hit, a flush", {"writer": one_hit, "flusher": flush_hits}),
    Scenario("two hits, a flush", {"writer": two_hits, "flusher": flush_hits}),
    Scenario(
        "a hit, two flushes", {"writer": one_hit, "flusher": flush_hits, "flusher 2": flush_hits}
    ),
    Scenario(
        "two writers, a flush", {"writer": one_hit, "page": hits_on_both, "flusher": flush_hits}
    ),
    Scenario("a first hit, a flush", {"writer": one_hit, "flusher": flush_hits}, setup=nothing),
    Scenario(
        "a hit, a flush, reads", {"writer": one_hit, "flusher": flush_hits, "reader": two_reads}
    ),
    Scenario(
        "two partitions", {"page": hits_on_both, "flusher": flush_hits}, options=TWO_PARTITIONS
    ),
    Scenario("all", EVERYONE),
    Scenario("all, and Redis loses nothing", EVERYONE, faults=LOSSLESS),
    Scenario(
        "a hit, a flush, a compaction, reads",
        {"writer": one_hit, "flusher": flush_hits, "compactor": compact, "reader": two_reads},
    ),
    *(
        Scenario(
            f"a hit in doubt, a flusher's clock {seconds:+} s",
            {"writer": one_hit, "flusher": flush_hits},
            clocks={"flusher": seconds},
            faults={"lost", "flushall", "restart", "rewind"},
            most_cost=3,
        )
        for seconds in (0, -5, 3600)
    ),
)
