from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from celery import current_app
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection

from django_hitcount import tasks
from django_hitcount.buffers.redis import checks
from django_hitcount.db import timeouts
from django_hitcount.refusals import refusal
from tests.conftest import REDIS_BUFFER

# Django's own checks of fields may ask each database.
pytestmark = pytest.mark.django_db(databases="__all__")


DAY = 24 * 3600
OURS = f"{__name__}.ours"


def hitcount_messages():
    return [m for m in run_checks() if "hitcount" in str(m.id)]


def ids(messages) -> list[str]:
    return [m.id.removeprefix("django_hitcount.") for m in messages if "hitcount" in str(m.id)]


@pytest.fixture
def scheduled():
    """Celery beat flushes."""
    current_app.conf.beat_schedule = tasks.beat_schedule()
    yield
    current_app.conf.beat_schedule = {}


@pytest.fixture
def hitcount(settings, redis, scheduled):
    """A good configuration with Redis; returns the dict to spoil."""
    settings.HITCOUNT = {"BUFFER": REDIS_BUFFER}
    return settings.HITCOUNT


def found(settings, **changes) -> list[str]:
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    return ids(run_checks())


def test_good_configurations_are_silent(settings, hitcount):
    assert found(settings) == []
    settings.HITCOUNT = {}
    assert ids(run_checks()) == []


def test_command_shows_the_message_and_the_hint(settings, hitcount):
    settings.HITCOUNT = {"BUFER": "x"}

    with pytest.raises(SystemCheckError, match=r"no setting 'BUFER'(.|\n)*HINT: Did you mean"):
        call_command("check", stdout=io.StringIO())


def test_e001_every_wrong_setting(settings, hitcount):
    assert found(settings, BUFER="x", SLOTS=-1) == ["E001", "E001"]


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"COUNTERS": {"views": {"repeat": -60}}}, "['repeat'] is -60.", "seconds from 1 to"),
        ({"COUNTERS": {"views": {"repeat": DAY}}}, "is 86400 seconds", "'month' or 'never'"),
        ({"TRUSTED_PROXIES": ["10.0.0.0/40"]}, "holds '10.0.0.0/40'", '("192.0.2.0/24")'),
        ({"REFUSALS": "bot"}, "['REFUSALS'] is 'bot'.", "list of dotted paths"),
        ({"REFUSALS": [{"name": "x"}]}, "holds {'name': 'x'}.", '{"NAME": path, "OPTIONS"'),
        ({"BOT_USER_AGENTS": ["("]}, "holds '('", "escape what is meant literally"),
        ({"VISITOR_IDENTITY": "user"}, "is 'user'.", '["user", "session", "address"]'),
    ],
)
def test_e001_says_the_value_and_the_fix(settings, hitcount, changes, message, hint):
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    (found,) = hitcount_messages()

    assert found.id == "django_hitcount.E001"
    assert message in found.msg
    assert hint in found.hint


@refusal("ours", "...")
def ours(context) -> bool:
    return False


REFUSALS = "django_hitcount.refusals."
NO_NETWORK = "'10.0.0.0/40' is no IP address or network ("
BUILT_IN = "Use one of 'django_hitcount.refusals.method', 'django_hitcount.refusals.prefetch', "
DECORATE = "Decorate a function with @refusal(name, reason)"


class TestE004:
    """What is well formed, but a refusal or an identity cannot be made of it."""

    @pytest.mark.parametrize(
        ("path", "message", "hint"),
        [
            ("nowhere.bot", "names 'nowhere.bot': No module named 'nowhere'", BUILT_IN),
            (REFUSALS + "bots_", f"names '{REFUSALS}bots_'", BUILT_IN),
            ("bot", "names 'bot': ", BUILT_IN),
            (".bot", "names '.bot': '.bot' is no dotted path.", BUILT_IN),
            ("..bot", "names '..bot': '..bot' is no dotted path.", BUILT_IN),
            (REFUSALS + "groups", "and no refusal.", DECORATE),
            (REFUSALS + "permissions", "and no refusal.", DECORATE),
            (REFUSALS + "bots", 'does not define a "bots" attribute', BUILT_IN),
            (REFUSALS + "users", "and no refusal.", DECORATE),
            ("time.time", "and no refusal.", DECORATE),
            ("datetime.date", "which is <class 'datetime.date'> and no refusal.", DECORATE),
        ],
    )
    def test_refusal_that_is_none(self, settings, hitcount, path, message, hint):
        self.is_told(settings, {"REFUSALS": [f"{REFUSALS}bot", path]}, message, hint)

    @pytest.mark.parametrize(
        ("name", "options", "problem"),
        [
            ("addresses", {"networks": ["10.0.0.0/40"]}, NO_NETWORK),
            ("addresses", {"networks": "10.0.0.0/8"}, "networks is '10.0.0.0/8': use a list of "),
            ("addresses", {"networks": []}, "networks is []: use a list of networks"),
            ("addresses", {"network": ["::/0"]}, "unexpected keyword argument 'network'"),
            ("user_agents", {"patterns": ["a", "["]}, "'[' is no regular expression: "),
            ("addresses", {"networks": ["::ffff:10.0.0.1"]}, "addresses mapped to IPv6 are"),
            ("user_agents", {"patterns": "a"}, "patterns is 'a': use a list of regular expr"),
            ("user_agents", {"patterns": None}, "patterns is None: use a list of regular expr"),
            ("groups", {"names": "editors"}, "names is 'editors': use a list of group names"),
            ("groups", {"names": ["editors", 5]}, "names is ['editors', 5]: use a list of"),
            ("groups", {"names": ["a"], "x": 1}, "unexpected keyword argument 'x'"),
            ("owner", {"of": "no field"}, "of is 'no field': use the name of a field, or a call"),
            ("owner", {"of": ""}, "of is '': use the name of a field, or a callable"),
            ("owner", {"of": "a__"}, "of is 'a__': use the name of a field, or a callable"),
            ("owner", {"of": 5}, "of is 5: use the name of a field, or a callable"),
            ("owner", {"of": "nowhere.owner_of"}, "No module named 'nowhere'"),
            ("permissions", {"names": "blog.change"}, "names is 'blog.change': use a list of perm"),
            ("permissions", {"names": ["change"]}, "'change' is no permission; write 'app_lab"),
            ("permissions", {"names": ["blog."]}, "'blog.' is no permission; write 'app_lab"),
            ("previews", {"cookie": ""}, "cookie is '': use the name of a cookie"),
            ("previews", {"header": 5}, "header is 5: use the name of a header"),
            ("previews", {"query": "x"}, "unexpected keyword argument 'query'"),
            ("staff", {"names": ["x"]}, "'Refusal' object is not callable"),
        ],
    )
    def test_options_that_make_none(self, settings, hitcount, name, options, problem):
        refusals = [{"NAME": REFUSALS + name, "OPTIONS": options}]

        told = f"gives '{REFUSALS}{name}' the OPTIONS {options!r}: "
        taken = {"staff": "no OPTIONS", "owner": "the OPTIONS 'of'"}.get(name, "the OPTIONS '")
        message = self.is_told(settings, {"REFUSALS": refusals}, told, f"It takes {taken}")
        assert problem in message

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("adress", "is none of ours and no dotted path."),
            ("nowhere.by", "cannot be imported: No module named 'nowhere'."),
            (".by", "cannot be imported: '.by' is no dotted path."),
            ("datetime.by", 'cannot be imported: Module "datetime" does not define'),
            ("datetime.MINYEAR", "is no plain function."),
        ],
    )
    def test_identity_that_is_none(self, settings, hitcount, name, problem):
        message = f"HITCOUNT['VISITOR_IDENTITY'] names {name!r}, which {problem}"

        hint = "Use 'user', 'session', 'cookie', 'address', 'browser', or the dotted path of a"
        self.is_told(settings, {"VISITOR_IDENTITY": ["user", name]}, message, hint)

    def is_told(self, settings, changes, message, hint) -> str:
        settings.HITCOUNT = {**settings.HITCOUNT, **changes}
        (found,) = hitcount_messages()
        assert found.id == "django_hitcount.E004"
        assert message in found.msg
        assert hint in found.hint
        return found.msg

    def test_both_are_told_at_once(self, settings, hitcount):
        assert found(settings, REFUSALS=["x"], VISITOR_IDENTITY=["x"]) == ["E004", "E004"]

    def test_nothing_is_made_of_what_is_malformed(self, settings, hitcount):
        assert found(settings, REFUSALS=["x"], SLOTS=0) == ["E001"]

    def test_all_of_ours_with_options_can_be_made(self, settings, hitcount):
        options = {
            "groups": {"names": ["editors"]},
            "owner": {"of": "author"},
            "addresses": {"networks": ["192.0.2.1", "2001:db8::/32"]},
            "user_agents": {"patterns": ["^Monitor/"]},
        }
        refusals = [{"NAME": REFUSALS + name, "OPTIONS": of} for name, of in options.items()]
        names = ["staff", "do_not_track", "global_privacy_control"]

        identities = ["browser", "django_hitcount.visitors.address"]
        assert not found(settings, REFUSALS=refusals, VISITOR_IDENTITY=identities)
        assert not found(settings, REFUSALS=[*(REFUSALS + name for name in names), OURS])


@pytest.mark.parametrize(
    "changes",
    [
        {"BUFFER": "nowhere.Buffer"},
        {"BUFFER": "datetime.date"},
        {"CACHE_ALIAS": "nowhere"},
        {"CACHE_ALIAS": "memory"},
    ],
)
def test_e002_buffer_that_cannot_be_made(settings, hitcount, changes):
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    settings.CACHES = {**settings.CACHES, "memory": memory}

    assert found(settings, **changes) == ["E002"]


def test_e003_unknown_vendor(monkeypatch):
    monkeypatch.setattr(type(connection._connections["default"]), "vendor", "oracle")

    messages = run_checks()

    assert "E003" in ids(messages)
    assert "is of vendor 'oracle'" in str([m.msg for m in messages if "E003" in str(m.id)])


@pytest.mark.parametrize("setting", ["BOT_USER_AGENTS", "NOT_BOT_USER_AGENTS", "REFUSALS"])
def test_w007_pattern_that_a_client_can_keep_busy(settings, hitcount, setting):
    patterns = ["LobbyScreen/", r"^Monitor/(\d+)+$"]
    refusal = {"NAME": "django_hitcount.refusals.user_agents", "OPTIONS": {"patterns": patterns}}
    settings.HITCOUNT = {
        **settings.HITCOUNT,
        setting: [refusal] if setting == "REFUSALS" else patterns,
    }

    (message,) = hitcount_messages()
    assert message.id == "django_hitcount.W007"
    assert setting in message.msg
    assert r"'^Monitor/(\\d+)+$', which takes" in message.msg
    assert "'Monitor/1111111111" in message.msg


def test_e006_no_autocommit(monkeypatch):
    monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)

    (message,) = hitcount_messages()
    assert message.id == "django_hitcount.E006"
    assert "'default'" in message.msg


def test_e003_knows_this_database():
    assert "E003" not in ids(run_checks())


def test_w001_unreachable_redis_without_its_password(settings, hitcount):
    alias = {**settings.CACHES["hitcount"], "LOCATION": "redis://me:sesame@127.0.0.1:1/0"}
    settings.CACHES = {**settings.CACHES, "hitcount": alias}

    assert found(settings) == ["W001"]
    assert "sesame" not in repr(run_checks())


@pytest.mark.parametrize("location", ["127.0.0.1:6379", "redis://localhost:abc/0"])
def test_e002_location_that_is_no_url(settings, hitcount, location):
    other = {**settings.CACHES["hitcount"], "LOCATION": location}
    settings.CACHES = {**settings.CACHES, "other": other}
    assert found(settings) == []

    assert found(settings, CACHE_ALIAS="other") == ["E002"]


@pytest.mark.parametrize("spelling", ["{}", "redis://x/1,{}", "{}?health_check_interval=9"])
def test_w002_another_alias_on_the_same_redis_database(settings, hitcount, spelling):
    alias = settings.CACHES["hitcount"]
    other = {**alias, "LOCATION": spelling.format(alias["LOCATION"])}
    settings.CACHES = {**settings.CACHES, "pages": other}

    assert found(settings) == ["W002"]


def test_w002_another_database_of_the_same_redis_is_fine(settings, hitcount):
    alias = settings.CACHES["hitcount"]
    other = {**alias, "LOCATION": alias["LOCATION"].replace("/1", "/2")}
    settings.CACHES = {**settings.CACHES, "pages": other}

    assert found(settings) == []


def test_w002_default_cache(settings, hitcount):
    settings.CACHES = {"default": settings.CACHES["hitcount"]}

    assert found(settings, CACHE_ALIAS="default") == ["W002"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("allkeys-lru", ["W003"]), ("volatile-lru", []), ("noeviction", [])],
)
def test_w003_evicting_policy(settings, redis, hitcount, policy, expected):
    redis.config_set("maxmemory-policy", policy)
    try:
        assert found(settings) == expected
    finally:
        redis.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"save": "3600 1", "appendonly": "no"}, ["W005"]),
        ({"save": "3600 1", "appendonly": "yes"}, []),
        ({"save": "", "appendonly": "no"}, []),
    ],
)
def test_w005_snapshots_alone(settings, redis, hitcount, options, expected):
    for name, value in options.items():
        redis.config_set(name, value)
    try:
        assert found(settings) == expected
    finally:
        redis.config_set("save", "")
        redis.config_set("appendonly", "no")


def test_w006_run_id_that_is_hidden(settings, redis, hitcount):
    redis.acl_setuser("nobody", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-info"])
    alias = settings.CACHES["hitcount"]
    location = alias["LOCATION"].replace("redis://", "redis://nobody:x@")
    settings.CACHES = {**settings.CACHES, "hitcount": {**alias, "LOCATION": location}}
    try:
        assert found(settings) == ["W006"]
    finally:
        redis.acl_deluser("nobody")


class TestW008:
    """The settings tell of a proxy that TRUSTED_PROXIES does not name."""

    LIMITED = {"likes": {}, "views": {"repeat": "daily"}}

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SECURE_PROXY_SSL_HEADER", ("HTTP_X_FORWARDED_PROTO", "https")),
            ("USE_X_FORWARDED_HOST", True),
        ],
    )
    def test_all_would_share_a_limit(self, settings, name, value):
        setattr(settings, name, value)

        assert found(settings, COUNTERS=self.LIMITED) == ["W008"]
        (message,) = hitcount_messages()
        assert name in message.msg
        assert "Counters: 'views'." in message.msg
        assert "HITCOUNT['TRUSTED_PROXIES']" in message.hint

    def test_silent_if_it_is_named(self, settings):
        settings.USE_X_FORWARDED_HOST = True

        assert found(settings, COUNTERS=self.LIMITED, TRUSTED_PROXIES=1) == []

    def test_silent_without_a_limit(self, settings):
        settings.USE_X_FORWARDED_HOST = True

        assert found(settings, COUNTERS={"views": {"repeat": "daily", "per_address": None}}) == []
        assert found(settings, COUNTERS={}) == []

    def test_silent_without_a_proxy(self, settings):
        assert found(settings, COUNTERS=self.LIMITED) == []


class TestW009:
    @pytest.fixture(autouse=True)
    def no_environment(self, monkeypatch):
        for name in ("PGCONNECT_TIMEOUT", "PGOPTIONS", "PGSERVICE"):
            monkeypatch.delenv(name, raising=False)

    def found_with(self, monkeypatch, options):
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
        return [message for message in hitcount_messages() if "W009" in str(message.id)]

    @pytest.mark.skipif(connection.vendor == "sqlite", reason="It waits 5 s by default")
    def test_nothing_is_set(self, monkeypatch):
        (message,) = self.found_with(monkeypatch, {})

        assert repr(dict(timeouts.ADVISED[connection.vendor])) in message.hint

    def test_silent_on_sqlite(self, monkeypatch):
        if connection.vendor == "sqlite":
            assert not self.found_with(monkeypatch, {})

    @pytest.mark.parametrize(
        "options",
        [
            *map(dict, timeouts.ADVISED.values()),
            {"connect_timeout": 10},
            {"init_command": "SET max_statement_time=3"},
            {"options": "-c statement_timeout=30s"},
            {"service": "mine"},
            {"read_default_file": "/etc/mysql/mine.cnf"},
        ],
    )
    def test_silent_if_anything_is(self, monkeypatch, options):
        assert not self.found_with(monkeypatch, options)

    def test_silent_if_libpq_is_told_otherwise(self, monkeypatch):
        monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
        if connection.vendor == "postgresql":
            assert not self.found_with(monkeypatch, {})


class TestW004:
    def test_nothing_flushes(self, settings, redis):
        settings.HITCOUNT = {"BUFFER": REDIS_BUFFER}

        (message,) = hitcount_messages()
        assert ids([message]) == ["W004"]
        assert "app.conf.beat_schedule |= django_hitcount" in message.hint

    def test_without_a_buffer_nothing_needs_to(self, settings):
        settings.HITCOUNT = {}

        assert ids(run_checks()) == []

    def test_schedule_in_a_table_is_not_read(self, settings, redis, monkeypatch):
        settings.HITCOUNT = {"BUFFER": REDIS_BUFFER}
        monkeypatch.setattr("django.apps.apps.is_installed", lambda name: True)

        assert ids(run_checks()) == []


def test_queryset_in_a_class_body_leaves_wrong_settings_to_the_checks(settings):
    settings.HITCOUNT = {"COUNTRES": {}}
    settings.ROOT_URLCONF = "tests.listing_urls"  # Imported by the checks, not before.
    sys.modules.pop("tests.listing_urls", None)

    assert ids(run_checks()) == ["E001"]


def test_ids_are_used_once():
    source = "".join(
        Path(module.__file__).read_text()
        for module in (
            checks,
            timeouts,
            __import__("django_hitcount.checks").checks,
        )
    )
    used = re.findall(r'id="django_hitcount\.(\w+)"', source)

    assert sorted(used) == sorted(set(used))
    assert set(used) == {
        "E001",
        "E002",
        "E003",
        "E004",
        "E005",
        "E006",
        "W001",
        "W002",
        "W003",
        "W004",
        "W005",
        "W006",
        "W007",
        "W008",
        "W009",
    }
