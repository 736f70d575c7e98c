from __future__ import annotations

import sys
from ipaddress import ip_network

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.database import DatabaseBuffer
from django_hitcount.conf import CounterOptions
from django_hitcount.conf.kinds import match_any

HOUR = 3600
DAY = 24 * HOUR


def test_defaults_without_the_setting(settings):
    del settings.HITCOUNT
    conf.get_config.cache_clear()

    assert conf.get_config() == conf.Config()
    assert isinstance(get_buffer(), DatabaseBuffer)


def test_config_follows_the_setting(settings):
    settings.HITCOUNT = {"SLOTS": 3, "COUNTERS": {"downloads": {}}}

    assert conf.get_config().slots == 3
    assert [*conf.get_config().counters] == ["views", "downloads"]
    assert conf.get_config() is conf.get_config()


def test_counter_has_defaults_and_options(settings):
    options = {"repeat": "daily", "visitors": True}
    settings.HITCOUNT = {"COUNTERS": {"downloads": options, "likes": {"repeat": 60}}}

    assert conf.get_config().counters == {
        "views": CounterOptions(repeat="always", visitors=False),
        "downloads": CounterOptions(repeat="daily", visitors=True, per_address=20),
        "likes": CounterOptions(repeat=60, visitors=False, per_address=20),
    }


def test_views_can_have_options_too(settings):
    settings.HITCOUNT = {"COUNTERS": {"views": {"visitors": True}}}

    assert conf.get_config().counters == {"views": CounterOptions(visitors=True)}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("REFUSALS", []),
        ("REFUSALS", ["a.b", {"NAME": "a.b"}, {"NAME": "a.b", "OPTIONS": {"x": 1}}]),
        ("REFUSALS", ({"NAME": "a.b", "OPTIONS": {}},)),
        ("BOT_USER_AGENTS", []),
        ("BOT_USER_AGENTS", ("^a", r"(b|c)\d", "(?P<x>d)")),
        ("TRUSTED_PROXIES", 20),
        ("TRUSTED_PROXIES", ["192.0.2.1", "10.0.0.0/8", "2001:db8::/32", "::1"]),
        ("VISITOR_IDENTITY", ["address"]),
        ("VISITOR_COOKIE", None),
        ("VISITOR_KEY_ROTATION", "never"),
        ("COUNTERS", {"views": {"repeat": 23 * HOUR}}),
        ("COUNTERS", {"views": {"repeat": "daily", "per_address": None}}),
        ("COUNTERS", {"views": {"per_address": 10**9}}),
        ("COUNTERS", {"views": {"refusals": None}, "downloads": {"refusals": ["a.b"]}}),
    ],
)
def test_good_values_pass(settings, setting, value):
    settings.HITCOUNT = {setting: value}

    assert conf.find_setting_errors() == []


def test_networks_are_read_once(settings):
    settings.HITCOUNT = {"TRUSTED_PROXIES": ["10.0.0.0/8", "::1"]}

    assert conf.get_config().trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1"))


def test_each_pattern_is_by_itself_and_ignores_case(settings):
    settings.HITCOUNT = {"BOT_USER_AGENTS": ["^a", "b|c$", r"(d)\1", r"(?P<x>e)\1", "(?P<x>f)-"]}
    texts = ["Ax", "xa", "xBx", "xC", "cx", "dd", "ee", "xF-", "x"]
    found = conf.get_config().bot_user_agents

    assert [text for text in texts if match_any(found, text)] == [
        "Ax",
        "xBx",
        "xC",
        "dd",
        "ee",
        "xF-",
    ]


@pytest.mark.parametrize("name", ["bot_user_agents", "not_bot_user_agents"])
@pytest.mark.parametrize("text", ["", "a", "\n"])
def test_empty_list_of_patterns_finds_nothing(settings, name, text):
    settings.HITCOUNT = {name.upper(): []}

    assert not match_any(getattr(conf.get_config(), name), text)
    assert not match_any(getattr(conf.Config(), name), text)


@pytest.mark.parametrize(
    ("hitcount", "message"),
    [
        ({"REDIIS": "x"}, "Unknown key in HITCOUNT: 'REDIIS'. Did you mean 'REDIS'?"),
        ({"redis": "x"}, "Unknown key in HITCOUNT: 'redis'. Did you mean 'REDIS'?"),
        ({"XYZZY": 1}, "Unknown key in HITCOUNT: 'XYZZY'. Use one of REDIS, "),
        ({5: 1}, "Unknown key in HITCOUNT: 5. Use one of "),
        ([], "Invalid value for HITCOUNT: []. Set it to a dict."),
        ({"REDIS": ""}, "HITCOUNT['REDIS']: ''. Set it to a string, or to None."),
        (
            {"SLOTS": 0},
            "Invalid value for HITCOUNT['SLOTS']: 0. Set it to a whole number from 1 to 32767.",
        ),
        ({"SLOTS": True}, "Invalid value for HITCOUNT['SLOTS']: True. Set it to a whole number"),
        (
            {"PARTITIONS": "16"},
            "HITCOUNT['PARTITIONS']: '16'. Set it to a whole number from 1",
        ),
        (
            {"TOTAL_TTL_SECONDS": 0.5},
            "HITCOUNT['TOTAL_TTL_SECONDS']: 0.5. Set it to a whole",
        ),
        (
            {"FLUSH_THRESHOLD": 0},
            "HITCOUNT['FLUSH_THRESHOLD']: 0. Set it to a whole number",
        ),
        (
            {"REDIS_TIMEOUT_SECONDS": 0},
            "Invalid value for HITCOUNT['REDIS_TIMEOUT_SECONDS']: 0. Set it to a number of seconds",
        ),
        ({"REDIS_TIMEOUT_SECONDS": float("inf")}, "greater than 0, 60 at most."),
        ({"REDIS_TIMEOUT_SECONDS": float("nan")}, "greater than 0, 60 at most."),
        ({"REDIS_TIMEOUT_SECONDS": True}, ": True. Set it to a number of seconds"),
        (
            {"COUNTERS": ["a"]},
            "HITCOUNT['COUNTERS']: ['a']. Set it to a dict of counter names",
        ),
        ({"COUNTERS": {"Likes": {}}}, "contains an invalid counter name: 'Likes'. Start it with"),
        ({"COUNTERS": {"x" * 51: {}}}, "50 characters at most."),
        (
            {"COUNTERS": {"a": {"x": 1}}},
            "Unknown key in HITCOUNT['COUNTERS']['a']: 'x'. Use one of repeat, visitors, per_",
        ),
        (
            {"COUNTERS": {"a": {"visitor": True}}},
            "Unknown key in HITCOUNT['COUNTERS']['a']: 'visitor'. Did you mean 'visitors'?",
        ),
        (
            {"COUNTERS": {"a": None}},
            "HITCOUNT['COUNTERS']['a']: None. Set it to a dict: {\"repeat\": \"daily\"}.",
        ),
        ({"COUNTERS": {5: {}}}, "HITCOUNT['COUNTERS'] contains an invalid counter name: 5. Start"),
        (
            {"COUNTERS": {"a": {"visitors": 1}}},
            "Invalid value for HITCOUNT['COUNTERS']['a']['visitors']: 1. Set it to True or False.",
        ),
        *(
            (
                {"COUNTERS": {"a": {"repeat": value}}},
                f"['a']['repeat']: {value!r}. Set it to 'always', 'daily', or a whole number",
            )
            for value in (-5, 0, 1.5, True, None, "weekly", "60", 366 * DAY + 1)
        ),
        *(
            ({"VISITOR_KEY_ROTATION": value}, f": {value!r}. Use one of 'day', 'month', 'never'.")
            for value in ("week", "", None, 1, ["day"])
        ),
        *(
            ({"VISITOR_IDENTITY": value}, f': {value!r}. Set it to a list such as ["user", ')
            for value in ("user", [], None, {"user": 1})
        ),
        (
            {"VISITOR_IDENTITY": ["user", None]},
            "HITCOUNT['VISITOR_IDENTITY'] contains an invalid item: None. ",
        ),
        *(
            (
                {"VISITOR_COOKIE": value},
                f"HITCOUNT['VISITOR_COOKIE']: {value!r}. Set it to a string, or to None.",
            )
            for value in ("", 5, True)
        ),
        ({"COUNTERS": {"a": {"repeat": 0}}}, f"a whole number of seconds from 1 to {366 * DAY}."),
        *(
            (
                {"COUNTERS": {"a": {"per_address": value}}},
                f"{value!r}. Set it to a whole number from 1 to 1000000000, or to None.",
            )
            for value in (0, -1, True, "20", 2.0, 10**9 + 1)
        ),
        ({"REFUSALS": [5]}, 'or, for options, {"NAME": path, "OPTIONS": {...}}.'),
        ({"COUNTERS": {"a": {"refusals": [5]}}}, "['a']['refusals'] contains an invalid item: 5."),
        ({"COUNTERS": {"a": {"refusals": "b"}}}, "['a']['refusals']: 'b'. Set it to a list of"),
        *(
            (
                {"TRUSTED_PROXIES": value},
                f": {value!r}. Set it to the number of proxies between the visitor and Django",
            )
            for value in (-1, 21, True, None, 1.0, "10.0.0.0/8", {"10.0.0.0/8"})
        ),
        *(
            (
                {"TRUSTED_PROXIES": ["10.0.0.0/8", value]},
                f"['TRUSTED_PROXIES'] contains an invalid IP address or network: '{value}' (",
            )
            for value in ("10.0.0.0/33", "10.0.0.1/8", "10.0.0", "", "localhost", None, 5, "::/129")
        ),
        ({"TRUSTED_PROXIES": ["x"]}, 'or a network in CIDR notation ("192.0.2.0/24").'),
        *(
            ({"REFUSALS": value}, f": {value!r}. Set it to a list of dotted paths of refusals")
            for value in (None, "a.b", {"NAME": "a.b"}, 5)
        ),
        *(
            (
                {"REFUSALS": ["a.b", value]},
                f"['REFUSALS'] contains an invalid item: {value!r}. Use the dotted path of",
            )
            for value in (
                *("", None, 5, {}, ["a.b"], {"OPTIONS": {}}, {"NAME": 5}),
                *({"NAME": "a.b", "OPTION": {}}, {"NAME": "a.b", "OPTIONS": []}),
            )
        ),
        *(
            (
                {name: "x"},
                f"HITCOUNT[{name!r}]: 'x'. Set it to a list of regular expressions",
            )
            for name in ("BOT_USER_AGENTS", "NOT_BOT_USER_AGENTS")
        ),
        (
            {"BOT_USER_AGENTS": ["a", ""]},
            "HITCOUNT['BOT_USER_AGENTS'] contains an invalid item: ''. Use a string.",
        ),
        *(
            (
                {"BOT_USER_AGENTS": ["good", value]},
                f"['BOT_USER_AGENTS'] contains an invalid regular expression: {value!r} (",
            )
            for value in ("[", "a)|(b", "*", "a(?i)", "a{99999999999999999999}")
        ),
        ({"BOT_USER_AGENTS": ["["]}, "Put a backslash before special characters"),
        (
            {"TRUSTED_PROXIES": ["::ffff:10.0.0.0/104"]},
            "IP address or network: '::ffff:10.0.0.0/104' (addresses mapped to IPv6 ",
        ),
        (
            {"VISITOR_IDENTITY": ["cookie"]},
            "visitors cannot be distinguished. Set HITCOUNT['VISITOR_COOKIE'] to the name",
        ),
        (
            {"COUNTERS": {"likes": {"visitor_identity": ["cookie"]}}},
            "HITCOUNT['COUNTERS']['likes']['visitor_identity'] only contains 'cookie', but ",
        ),
    ],
)
def test_wrong_setting_is_an_error_with_value_and_fix(settings, hitcount, message):
    settings.HITCOUNT = hitcount

    with pytest.raises(ImproperlyConfigured) as raised:
        conf.get_config()

    assert message in str(raised.value)
    assert [str(error) for error in conf.find_setting_errors()] == [str(raised.value)]


@pytest.mark.parametrize(
    ("rotation", "longest"), [("day", 23 * HOUR), ("month", 28 * DAY), ("never", 366 * DAY)]
)
def test_repeat_is_no_longer_than_a_visitor_is_known(settings, rotation, longest):
    def errors(seconds):
        counters = {"views": {"repeat": seconds}, "downloads": {}}
        settings.HITCOUNT = {"VISITOR_KEY_ROTATION": rotation, "COUNTERS": counters}
        return [str(error) for error in conf.find_setting_errors()]

    assert errors(longest) == []
    (error,) = errors(longest + 1)
    if rotation != "never":
        assert f"['views']['repeat']: {longest + 1}. " in error
        assert f"['VISITOR_KEY_ROTATION'] is {rotation!r}, so visitors are recognised for" in error
        assert error.endswith(
            "Use fewer seconds, or set VISITOR_KEY_ROTATION to 'month' or 'never'."
        )


def test_all_errors_are_reported_at_once(settings):
    settings.HITCOUNT = {"SLOTS": 0, "REFUSALS": 5, "COUNTERS": {"views": {"repeat": 366 * DAY}}}

    places = [error.place for error in conf.find_setting_errors()]
    assert places == ["HITCOUNT['SLOTS']", "HITCOUNT['REFUSALS']"]


def test_redis_without_its_libraries_is_an_error_with_value_and_fix(settings, monkeypatch):
    settings.HITCOUNT = {"REDIS": "hitcount"}
    monkeypatch.setitem(sys.modules, "django_hitcount.buffers.redis", None)

    with pytest.raises(ImproperlyConfigured, match=r"'hitcount', but .* is not installed. Install"):
        get_buffer()


def test_no_setting_is_read_at_import():
    """Otherwise override_settings would not work, nor settings that come late."""
    import subprocess
    import sys

    code = "import django_hitcount.conf, django_hitcount.tasks, django_hitcount.exceptions"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={})
