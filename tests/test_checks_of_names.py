"""What is well formed, but a refusal or an identity cannot be made of it."""

from __future__ import annotations

import pytest

from django_hitcount.refusals import refusal
from tests.check_messages import hitcount_messages, ids_with

# Django's own checks of fields may ask each database.
pytestmark = pytest.mark.django_db(databases="__all__")


OURS = f"{__name__}.ours"
REFUSALS = "django_hitcount.refusals."
NO_NETWORK = "'10.0.0.0/40' is no IP address or network ("
BUILT_IN = "Use one of 'django_hitcount.refusals.method', 'django_hitcount.refusals.prefetch', "
DECORATE = "Decorate a function with @refusal(name, reason)"


@refusal("ours", "...")
def ours(context) -> bool:
    return False


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
def test_refusal_that_is_none(settings, hitcount, path, message, hint):
    is_told(settings, {"REFUSALS": [f"{REFUSALS}bot", path]}, message, hint)


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
def test_options_that_make_none(settings, hitcount, name, options, problem):
    refusals = [{"NAME": REFUSALS + name, "OPTIONS": options}]

    told = f"gives '{REFUSALS}{name}' the OPTIONS {options!r}: "
    taken = {"staff": "no OPTIONS", "owner": "the OPTIONS 'of'"}.get(name, "the OPTIONS '")
    message = is_told(settings, {"REFUSALS": refusals}, told, f"It takes {taken}")
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
def test_identity_that_is_none(settings, hitcount, name, problem):
    message = f"HITCOUNT['VISITOR_IDENTITY'] names {name!r}, which {problem}"

    hint = "Use 'user', 'session', 'cookie', 'address', 'browser', or the dotted path of a"
    is_told(settings, {"VISITOR_IDENTITY": ["user", name]}, message, hint)


def is_told(settings, changes, message, hint) -> str:
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    (found,) = hitcount_messages()
    assert found.id == "django_hitcount.E004"
    assert message in found.msg
    assert hint in found.hint
    return found.msg


def test_both_are_told_at_once(settings, hitcount):
    assert ids_with(settings, REFUSALS=["x"], VISITOR_IDENTITY=["x"]) == ["E004", "E004"]


def test_nothing_is_made_of_what_is_malformed(settings, hitcount):
    assert ids_with(settings, REFUSALS=["x"], SLOTS=0) == ["E001"]


def test_all_of_ours_with_options_can_be_made(settings, hitcount):
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
