"""Which user agents are bots."""

from __future__ import annotations

from functools import lru_cache
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from is_bot import Bots

from django_hitcount import refusals
from django_hitcount.refusals import is_bot
from tests.browsers import BROWSER

FIREFOX = BROWSER["user-agent"]

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"

BOTS = [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    f"Mozilla/5.0 {WEBKIT}; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    f"Mozilla/5.0 (X11; Linux x86_64) {WEBKIT} HeadlessChrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)",
    "facebookexternalhit/1.1",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "curl/8.5.0",
    "python-requests/2.32.3",
    "Wget/1.21.4",
    "Go-http-client/2.0",
]
BROWSERS = [
    FIREFOX,
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/126.0.0.0 Safari/537.36",
    f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0",
    f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {WEBKIT} Version/17.5 Mobile/15E148",
    f"Mozilla/5.0 (Linux; Android 14; SM-S921B) {WEBKIT} SamsungBrowser/25.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Android 14; Mobile; rv:127.0) Gecko/127.0 Firefox/127.0",
]


@pytest.mark.parametrize("user_agent", BOTS, ids=lambda text: text[-24:])
def test_bots_are_bots(user_agent):
    assert is_bot(user_agent) is True


@pytest.mark.parametrize("user_agent", BROWSERS, ids=lambda text: text[-24:])
def test_browsers_are_none(user_agent):
    assert is_bot(user_agent) is False


@pytest.mark.parametrize("user_agent", ["", " ", "\t\n"])
def test_empty_user_agent_is_a_bot(user_agent):
    assert is_bot(user_agent)


@pytest.mark.parametrize("pattern", ["^Mozilla/5.0 .*rv:140", "FIREFOX/1[34]0"])
def test_own_pattern_adds_bots(settings, pattern):
    settings.HITCOUNT = {"BOT_USER_AGENTS": ["^Monitor/", pattern]}

    assert is_bot(FIREFOX)
    assert is_bot("monitor/7 of (our) own, as Mozilla/5.0 does it")
    assert not is_bot(BROWSERS[1])


def test_exception_takes_one_of_the_library_out(settings):
    settings.HITCOUNT = {"NOT_BOT_USER_AGENTS": ["curl"]}

    assert not is_bot("curl/8.5.0")
    assert is_bot("Wget/1.21.4")


@pytest.mark.parametrize("user_agent", ["Monitor/7", FIREFOX, ""])
def test_exception_has_the_last_word(settings, user_agent):
    settings.HITCOUNT = {"BOT_USER_AGENTS": ["."], "NOT_BOT_USER_AGENTS": ["Monitor|Gecko|^$"]}

    assert not is_bot(user_agent)
    assert is_bot("Opera/9.80")


def test_changed_setting_takes_effect_though_the_answer_was_remembered(settings):
    assert not is_bot(FIREFOX)
    settings.HITCOUNT = {"BOT_USER_AGENTS": ["Firefox"]}
    assert is_bot(FIREFOX)
    settings.HITCOUNT = {}
    assert not is_bot(FIREFOX)


def test_library_is_called_once_for_each_user_agent(settings):
    settings.HITCOUNT = {}
    with mock.patch.object(Bots, "is_bot", return_value=False) as library:
        answers = [is_bot(text) for text in BROWSERS * 3]

    assert not any(answers)
    assert [call.args[0] for call in library.call_args_list] == BROWSERS


def test_what_is_remembered_is_bounded(settings, monkeypatch):
    """A client that makes up user agents fills no memory."""
    assert refusals._classify.cache_info().maxsize == refusals.REMEMBERED_USER_AGENTS
    monkeypatch.setattr(refusals, "_classify", lru_cache(2)(refusals._classify.__wrapped__))
    settings.HITCOUNT = {}
    with mock.patch.object(Bots, "is_bot", return_value=False) as library:
        for number in [1, 2, 3, 1]:
            is_bot(f"{FIREFOX} {number}" + "x" * 10_000)

    assert library.call_count == 4
    assert {len(call.args[0]) for call in library.call_args_list} == {refusals.LONGEST_USER_AGENT}


def test_only_the_first_characters_of_a_user_agent_count():
    padding = " x" * refusals.LONGEST_USER_AGENT

    assert is_bot(f"{FIREFOX} Googlebot{padding}")
    assert not is_bot(f"{FIREFOX}{padding} Googlebot")


@given(st.text(max_size=3000))
def test_whatever_a_client_sends_is_a_bot_or_not(user_agent):
    assert is_bot(user_agent) in {True, False}
