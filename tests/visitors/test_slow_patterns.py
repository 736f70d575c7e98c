"""Patterns that a user agent can make slow are found, quickly; other patterns are not."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from django_hitcount.visitors.bots import LONGEST_USER_AGENT
from django_hitcount.visitors.slow_patterns import SLOW_SECONDS, find_slow_text

SLOW = [
    r"(a+)+$",
    r"^Monitor/(\d+)+$",
    r"(\w+\s?)*$",
    r"(x|xx)+y",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"^Mozilla/5\.0 \((?:[^;]+;?\s*)*\) Foo",
    r"([a-zA-Z0-9._-]+)*@x",
    r"(?:(?:\d{1,3})+\.)+Q",
    r"(?:\W+\S?)+X{2}",
    r"(?=(é+)+z)",
    r".*.*.*=x",
    r"[^x]*[^y]*[^z]*q",
]

FAST = [
    "LobbyScreen/",
    r"\bkiosk\b",
    "^OurApp/",
    "bot|crawl|spider",
    "^$",
    ".",
    "^Mozilla/5.0 .*rv:140",
    "(?>a+)+b",
    "(a++)+b",
    r"\s+$",
    r"^Monitor/\d+(?:\.\d+)*$",
    "(?<=x)y(?!z)",
    r"(?P<quote>['\"]).*?(?P=quote)",
]


def found(pattern: str):
    return find_slow_text(re.compile(pattern, re.IGNORECASE), LONGEST_USER_AGENT)


@pytest.mark.parametrize("pattern", SLOW)
def test_slow_pattern_is_found_before_it_takes_long(pattern):
    began_at = time.thread_time()
    slow = found(pattern)

    assert slow
    assert slow.seconds > SLOW_SECONDS
    assert len(slow.user_agent) <= LONGEST_USER_AGENT
    assert time.thread_time() - began_at < 5


@pytest.mark.parametrize("pattern", FAST)
def test_fast_pattern_is_not(pattern):
    assert found(pattern) is None


def test_without_the_parser_of_patterns_the_worst_are_found(monkeypatch):
    """Python does not promise that it is there."""
    monkeypatch.setattr("django_hitcount.visitors.slow_patterns.parser", None)
    find_slow_text.cache_clear()

    assert found(r"(a+)+$")
    assert found("LobbyScreen/") is None
    find_slow_text.cache_clear()


PIECES = ["a", r"\d", r"\W", "[^-x]", "(b|cd)", "(?:e)", ".", "^", "$", r"\b", "(?!f)", "(?<!g)"]
REPEATS = ["", "*", "+", "?", "{2,5}", "*?", "++"]


@hypothesis_settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(REPEATS)), max_size=6))
def test_any_pattern_is_looked_at(pieces):
    text = "".join(
        piece if piece in {"^", "$", r"\b"} else piece + repeat for piece, repeat in pieces
    )
    slow = found(text)

    assert slow is None or slow.seconds > SLOW_SECONDS
