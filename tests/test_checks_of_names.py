"""Valid settings that name a refusal or an identity that cannot be created."""

from __future__ import annotations

import re

import pytest
from django.utils.module_loading import import_string

from django_hitcount.refusals import refusal
from tests.check_messages import hitcount_messages, ids_with

# Django's checks of fields may query each database.
pytestmark = pytest.mark.django_db(databases="__all__")


OURS = f"{__name__}.ours"
REFUSALS = "django_hitcount.refusals."
NO_NETWORK = "invalid IP address or network: '10.0.0.0/40' ("
BUILT_IN = "Use one of 'django_hitcount.refusals.addresses', 'django_hitcount.refusals.bot', "
DECORATE = "Decorate a function with @refusal(name, reason)"


@refusal("ours", "...")
def ours(context) -> bool:
    return False


async def find_owner(obj) -> int:
    return obj.author_id


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        (
            "nowhere.bot",
            "'nowhere.bot', which cannot be imported: No module",
            BUILT_IN,
        ),
        (REFUSALS + "bots_", f"contains '{REFUSALS}bots_'", BUILT_IN),
        ("bot", "contains 'bot', which", BUILT_IN),
        (".bot", "cannot be imported: '.bot' is not a dotted path.", BUILT_IN),
        ("..bot", "cannot be imported: '..bot' is not a dotted path.", BUILT_IN),
        (REFUSALS + "groups", "which is not a refusal: ", DECORATE),
        (REFUSALS + "permissions", "which is not a refusal: ", DECORATE),
        (REFUSALS + "bots", 'does not define a "bots" attribute', BUILT_IN),
        (REFUSALS + "registry", "which is not a refusal: ", DECORATE),
        ("time.time", "which is not a refusal: ", DECORATE),
        ("datetime.date", "which is not a refusal: <class 'datetime.date'>.", DECORATE),
    ],
)
def test_wrong_refusal(settings, hitcount, path, message, hint):
    assert_e004(settings, {"REFUSALS": [f"{REFUSALS}bot", path]}, message, hint)


def test_hint_lists_all_built_in_refusals(settings, hitcount):
    settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": ["bot"]}

    (message,) = hitcount_messages()
    paths = re.findall(r"'(django_hitcount\.refusals\.\w+)'", message.hint)
    assert len({*paths}) == 13
    assert all(callable(found) or found.refuses for found in map(import_string, paths))


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("addresses", {"networks": ["10.0.0.0/40"]}, NO_NETWORK),
        (
            "addresses",
            {"networks": "10.0.0.0/8"},
            "must be a list of networks, not '10.0.0.0/8'",
        ),
        ("addresses", {"networks": []}, "networks must be a list of networks, not []"),
        ("addresses", {"network": ["::/0"]}, "unexpected keyword argument 'network'"),
        ("user_agents", {"patterns": ["a", "["]}, "invalid regular expression: '[' ("),
        ("addresses", {"networks": ["::ffff:10.0.0.1"]}, "addresses mapped to IPv6 are"),
        ("user_agents", {"patterns": "a"}, "must be a list of regular expressions, not 'a'"),
        ("user_agents", {"patterns": None}, "must be a list of regular expressions, not None"),
        ("groups", {"names": "editors"}, "names must be a list of group names, not 'editors'"),
        ("groups", {"names": ["editors", 5]}, "must be a list of group names, not ['editors', 5]"),
        ("groups", {"names": ["a"], "x": 1}, "unexpected keyword argument 'x'"),
        ("owner", {"of": "no field"}, "of must be the name of a field or a callable, not 'no f"),
        ("owner", {"of": ""}, "of must be the name of a field or a callable, not ''"),
        ("owner", {"of": "a__"}, "of must be the name of a field or a callable, not 'a__'"),
        ("owner", {"of": 5}, "of must be the name of a field or a callable, not 5"),
        ("owner", {"of": f"{__name__}.find_owner"}, "is not a plain function, without async, or"),
        ("owner", {"of": "nowhere.owner_of"}, "No module named 'nowhere'"),
        (
            "permissions",
            {"names": "blog.change"},
            "must be a list of permissions, not 'blog.",
        ),
        ("permissions", {"names": ["change"]}, "must be 'app_label.codename', not 'change'"),
        ("permissions", {"names": ["blog."]}, "must be 'app_label.codename', not 'blog.'"),
        ("previews", {"cookie": ""}, "cookie must be the name of a cookie, not ''"),
        ("previews", {"header": 5}, "header must be the name of a header, not 5"),
        ("previews", {"query": "x"}, "unexpected keyword argument 'query'"),
        ("consent", {"predicate": 5}, "5 is not a plain function, without async"),
        ("consent", {"predicate": "nowhere.agreed"}, "No module named 'nowhere'"),
        ("staff", {"names": ["x"]}, "'Refusal' object is not callable"),
    ],
)
def test_wrong_options(settings, hitcount, name, options, problem):
    refusals = [{"NAME": REFUSALS + name, "OPTIONS": options}]

    start = f"Invalid OPTIONS {options!r} of '{REFUSALS}{name}' in HITCOUNT['REFUSALS']: "
    hints = {"staff": "Remove the OPTIONS", "owner": "Use the OPTIONS 'of'."}
    hint = hints.get(name, "Use the OPTIONS '")
    if "No module" in problem:
        hint = "Correct the dotted path"
    message = assert_e004(settings, {"REFUSALS": refusals}, start, hint)
    assert problem in message


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("adress", "adress doesn't look like a module path."),
        ("nowhere.by", "No module named 'nowhere'."),
        (".by", "'.by' is not a dotted path."),
        ("datetime.by", 'Module "datetime" does not define'),
        ("datetime.MINYEAR", "'datetime.MINYEAR' is not a plain function, without async, or"),
    ],
)
def test_wrong_identity(settings, hitcount, name, problem):
    message = f"HITCOUNT['VISITOR_IDENTITY'] contains {name!r}, which cannot be used: {problem}"

    hint = "Use 'user', 'session', 'cookie', 'address', 'browser', or the dotted path of a"
    assert_e004(settings, {"VISITOR_IDENTITY": ["user", name]}, message, hint)


def assert_e004(settings, changes, message, hint) -> str:
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    (found,) = hitcount_messages()
    assert found.id == "django_hitcount.E004"
    assert message in found.msg
    assert hint in found.hint
    return found.msg


def test_both_are_reported_at_once(settings, hitcount):
    assert ids_with(settings, REFUSALS=["x"], VISITOR_IDENTITY=["x"]) == ["E004", "E004"]


def test_refusals_of_each_counter_are_checked(settings, hitcount):
    counters = {"views": {"refusals": ["x"]}, "downloads": {"refusals": []}, "likes": {}}

    assert ids_with(settings, REFUSALS=["x"], COUNTERS=counters) == ["E004", "E004"]


def test_malformed_settings_are_reported_alone(settings, hitcount):
    assert ids_with(settings, REFUSALS=["x"], SLOTS=0) == ["E001"]


def test_all_built_in_ones_with_options_can_be_created(settings, hitcount):
    options = {
        "groups": {"names": ["editors"]},
        "owner": {"of": "author"},
        "addresses": {"networks": ["192.0.2.1", "2001:db8::/32"]},
        "user_agents": {"patterns": ["^Monitor/"]},
    }
    refusals = [{"NAME": REFUSALS + name, "OPTIONS": of} for name, of in options.items()]
    names = ["staff", "do_not_track", "global_privacy_control"]

    identities = ["browser", "django_hitcount.visitors.address"]
    assert not ids_with(settings, REFUSALS=refusals, VISITOR_IDENTITY=identities)
    assert not ids_with(settings, REFUSALS=[*(REFUSALS + name for name in names), OURS])
