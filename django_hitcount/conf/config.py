"""
The settings: each is declared once, with its default, its kind and what it means.

No other module reads HITCOUNT. docs/settings.rst explains the settings, and a test compares it with
the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from django.conf import settings

from django_hitcount.conf import kinds
from django_hitcount.conf.declaring import dict_of, read_all, setting
from django_hitcount.conf.kinds import Kind, SettingError
from django_hitcount.conf.page_options import PAGES, PageOptions
from django_hitcount.defaults import default_identities, default_refusals

DEFAULT_COUNTER = "views"

ROTATION_SECONDS = {"day": 23 * 3600, "month": 28 * 24 * 3600, "never": 366 * 24 * 3600}
"""
By rotation, the largest ``repeat``: the length of the shortest period.

Visitors are recognised by the keys of this period and of the one before it.
"""

MOST_PARTITIONS = 1024
"""
The largest value of PARTITIONS. A flush looks at this number of partitions, because PARTITIONS may
have been larger before. It does so in one round trip.
"""

HITS_PER_ADDRESS = 20
"""
The default limit of counters with a ``repeat`` rule: above what a network of readers needs, and far
below what an attacker needs. docs/identifying.rst has the figures.
"""


REPEAT = Kind[Any](
    lambda value: (
        value in ("always", "daily") or kinds.is_whole_number(value, 1, ROTATION_SECONDS["never"])
    ),
    "Set it to 'always', 'daily', or a whole number of seconds from 1 to "
    f"{ROTATION_SECONDS['never']}.",
)


@dataclass(frozen=True, kw_only=True)
class CounterOptions:
    """The options of one counter: which of its hits count, and what is counted besides."""

    repeat: int | Literal["always", "daily"] = setting("always", REPEAT)
    """When a hit of the same visitor on the same object counts again."""

    visitors: bool = setting(False, kinds.FLAG)
    """Whether to count the unique visitors of each object and day as well."""

    # The limit is in practice none, and a number that every database can store.
    per_address: int | None = setting(None, kinds.or_none(kinds.whole_number(1, 1_000_000_000)))
    """How many hits of one address count on the same object in one calendar day."""

    refusals: tuple[tuple[str, kinds.Options], ...] | None = setting(
        None, kinds.or_none(kinds.REFUSALS)
    )
    """Why hits of this counter are not counted, in place of ``REFUSALS``."""

    visitor_identity: tuple[str, ...] | None = setting(None, kinds.or_none(kinds.IDENTITIES))
    """How visitors of this counter are identified, in place of ``VISITOR_IDENTITY``."""

    @cached_property
    def identifies_visitors(self) -> bool:
        """Whether hits of this counter need the identity of their visitor."""
        return self.visitors or self.repeat != "always"

    @cached_property
    def needs_origin(self) -> bool:
        """Whether hits of this counter need to know where their request comes from."""
        return self.identifies_visitors or bool(self.per_address)

    @cached_property
    def keeps_seen_visitors(self) -> bool:
        """Whether the hashes of the visitors of each day are kept until the day is closed."""
        return self.visitors or self.repeat == "daily"


NO_OPTIONS = CounterOptions()
"""The options of a counter that has none, or that is no longer declared."""

OPTIONS = dict_of(CounterOptions, 'Set it to a dict: {"repeat": "daily"}.')


def _convert_counters(place: str, value: Mapping[object, object]) -> Mapping[str, CounterOptions]:
    found = {DEFAULT_COUNTER: NO_OPTIONS}
    for counter, options in value.items():
        if not isinstance(counter, str) or not kinds.is_counter_name(counter):
            raise SettingError(
                place,
                f"{place} contains an invalid counter name: {counter!r}.",
                kinds.NAME_HINT,
            )
        if isinstance(options, Mapping) and options.get("repeat", "always") != "always":
            options = {"per_address": HITS_PER_ADDRESS, **options}
        found[counter] = OPTIONS.read(f"{place}[{counter!r}]", options)
    return found


COUNTERS = Kind[Mapping[str, CounterOptions]](
    kinds.is_dict,
    'Set it to a dict of counter names, each with its options: {"downloads": {}}.',
    _convert_counters,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The values of HITCOUNT. Each key of the setting is a field in lower case."""

    redis: str | None = setting(None, kinds.or_none(kinds.TEXT))
    """
    The name in ``CACHES`` of the Redis where hits wait before they reach the tables. None: hits are
    written into the tables at once.
    """

    counters: Mapping[str, CounterOptions] = setting({}, COUNTERS)
    """The names of your counters, each with a dict of options."""

    refusals: tuple[tuple[str, kinds.Options], ...] = setting([*default_refusals], kinds.REFUSALS)
    """
    Why hits are not counted: dotted paths of refusals, in the order in which they are tried.
    """

    beacon_origins: tuple[str, ...] = setting([], kinds.ORIGINS)
    """Other sites whose pages may send hits with ``{% hit_beacon %}``, as browsers write them."""

    beacon_hits_per_minute: int | None = setting(600, kinds.or_none(kinds.MANY))
    """How many hits of one address ``{% hit_beacon %}`` counts in a minute, on all objects."""

    bot_user_agents: tuple[re.Pattern[str], ...] = setting([], kinds.PATTERNS)
    """User agents to treat as bots, in addition to those that the library knows."""

    not_bot_user_agents: tuple[re.Pattern[str], ...] = setting([], kinds.PATTERNS)
    """User agents not to treat as bots."""

    trusted_proxies: int | tuple[kinds.Network, ...] = setting(0, kinds.PROXIES)
    """
    Which proxies to trust for the client's address: the number of proxies in front of the site, or
    their networks.
    """

    visitor_identity: tuple[str, ...] = setting([*default_identities], kinds.IDENTITIES)
    """How visitors are identified: a list of identities. The first one with an answer is used."""

    visitor_cookie: str | None = setting(None, kinds.or_none(kinds.TEXT))
    """The name of the cookie that the identity ``"cookie"`` reads."""

    visitor_key_rotation: Literal["day", "month", "never"] = setting(
        "day", kinds.choice("day", "month", "never")
    )
    """
    How long visitors can be recognised: when the visitor key changes, under which they are hashed.
    """

    partitions: int = setting(16, kinds.whole_number(1, MOST_PARTITIONS))
    """The number of *partitions*: the parts that the Redis buffer is split into."""

    slots: int = setting(64, kinds.whole_number(1, 32_767))
    """
    How many rows one counter may use between two compactions, so that its writers do not wait for
    each other.
    """

    pages: PageOptions = setting({}, PAGES)  # noqa: RUF009 - it is a field
    """How ``django_hitcount.pages`` counts pages by their paths: a dict of options."""

    redis_timeout_seconds: float = setting(0.25, kinds.SECONDS_TO_WAIT)
    """
    How long a whole call to Redis may take: getting a connection, opening it, and receiving the
    answers, even if they come in many pieces.
    """

    total_ttl_seconds: int = setting(3600, kinds.whole_number(1, 30 * 24 * 3600))
    """
    How long Redis keeps a *running total*, the total that each hit raises, after it was loaded from
    the tables.
    """

    # A flush of so many counters takes about a minute.
    flush_threshold: int | None = setting(None, kinds.or_none(kinds.MANY))
    """
    Flush a partition early, without waiting for the schedule, if it holds more pending counters
    than this.
    """

    def options_of(self, counter: str) -> CounterOptions:
        """Return the options of a counter, or the defaults if it is no longer declared."""
        return self.counters.get(counter, NO_OPTIONS)

    def identities_of(self, counter: str | None) -> tuple[str, tuple[str, ...]]:
        """Return how a counter identifies visitors, after the place of HITCOUNT that says so."""
        own = self.options_of(counter).visitor_identity if counter else None
        if own is None:
            return "HITCOUNT['VISITOR_IDENTITY']", self.visitor_identity
        return f"HITCOUNT['COUNTERS'][{counter!r}]['visitor_identity']", own


SETTINGS = {column.name.upper(): column.metadata for column in fields(Config)}
"""What is declared of the keys of HITCOUNT."""


def read_setting() -> tuple[Config, list[SettingError]]:
    """Return HITCOUNT as an object, with everything that is wrong with it."""
    given = getattr(settings, "HITCOUNT", {})
    if not isinstance(given, Mapping):
        message = f"Invalid value for HITCOUNT: {given!r}."
        return Config(), [SettingError("HITCOUNT", message, "Set it to a dict.")]
    values, errors = read_all(SETTINGS, "HITCOUNT", given)
    config = Config(**values)
    return config, errors or [*_find_conflicts(config)]


def _find_conflicts(config: Config) -> Iterator[SettingError]:
    """Yield an error for each two settings that do not go together."""
    longest = ROTATION_SECONDS[config.visitor_key_rotation]
    for counter, options in config.counters.items():
        if isinstance(options.repeat, int) and options.repeat > longest:
            yield SettingError(
                "HITCOUNT['COUNTERS']",
                f"Invalid value for HITCOUNT['COUNTERS'][{counter!r}]['repeat']: {options.repeat}. "
                f"HITCOUNT['VISITOR_KEY_ROTATION'] is {config.visitor_key_rotation!r}, so visitors "
                f"are recognised for {longest} seconds only.",
                "Use fewer seconds, or set VISITOR_KEY_ROTATION to 'month' or 'never'.",
            )
    pages = config.pages
    named = [("site_counters", name) for name in pages.site_counters]
    for option, name in (("counter", pages.counter), *named, ("not_found", pages.not_found)):
        if name is not None and name not in config.counters:
            yield SettingError(
                "HITCOUNT['PAGES']",
                f"HITCOUNT['PAGES'][{option!r}] names {name!r}, which is no counter.",
                f"Declare it: HITCOUNT['COUNTERS'][{name!r}] = {{}}.",
            )
    for place, identities in dict.fromkeys(map(config.identities_of, (None, *config.counters))):
        if {*identities} == {"cookie"} and not config.visitor_cookie:
            yield SettingError(
                place,
                f"{place} only contains 'cookie', but HITCOUNT['VISITOR_COOKIE'] is not set, so "
                "visitors cannot be distinguished.",
                "Set HITCOUNT['VISITOR_COOKIE'] to the name of your cookie.",
            )
