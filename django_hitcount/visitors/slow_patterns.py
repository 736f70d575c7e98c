"""
Regular expressions that a client can keep busy with a user agent that it makes up.

Texts that are likely to be slow are made from the pattern itself: what it matches up to one of
its repeats, what that repeat matches over and over, and then something that it does not match.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, product
from typing import Any, NamedTuple

try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # No part of Python's public interface.
    parser = None

SLOW_SECONDS = 0.01

GROWTH = 1.25
"""
How much longer each text is than the one before.

If a pattern takes twice as long with each character, the first text that is slow takes some
twenty times as long as allowed, and not hours.
"""

SECONDS_PER_PATTERN = 0.5
"""Tried for so long: a check is not to keep anybody waiting."""

MOST_ATTACKS = 500

ALPHABET = "a1 /.;-_()AZ09~\xe9"

ENDS = ("", "!", "\xe9")

_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda letter: letter.isalnum() or letter == "_",
}


class Slow(NamedTuple):
    """A user agent that a pattern takes long over."""

    user_agent: str
    seconds: float


@lru_cache(maxsize=256)
def slowest_found(pattern: re.Pattern[str], longest: int) -> Slow | None:
    """
    A text of up to ``longest`` characters that ``pattern`` takes more than 10 ms over, if found.

    Takes up to half a second, and a moment with most patterns.
    """
    give_up_at = time.perf_counter() + SECONDS_PER_PATTERN
    for attack in islice(_attacks(pattern), MOST_ATTACKS):
        for text in attack.texts(longest):
            seconds = _seconds(pattern, text)
            if seconds > SLOW_SECONDS:
                return Slow(text, seconds)
            if time.perf_counter() > give_up_at:
                return None
    return None


def _seconds(pattern: re.Pattern[str], text: str) -> float:
    """How long a search takes the processor, whatever else the machine does."""
    began_at = time.thread_time()
    pattern.search(text)
    return time.thread_time() - began_at


class _Attack(NamedTuple):
    start: str
    repeated: str
    end: str

    def texts(self, longest: int) -> Iterator[str]:
        """Longer and longer ones, up to ``longest`` characters."""
        most = (longest - len(self.start) - len(self.end)) // len(self.repeated)
        times = 2
        while times < most:
            yield self.start + self.repeated * times + self.end
            times = max(times + 1, int(times * GROWTH))
        yield self.start + self.repeated * most + self.end


def _attacks(pattern: re.Pattern[str]) -> Iterator[_Attack]:
    places = [("", "")]
    letters = ALPHABET
    if parser:
        tree = parser.parse(pattern.pattern, pattern.flags)
        places += _repeats(tree, "")
        letters += "".join({*_literals(tree)} - {*ALPHABET})
    starts = dict.fromkeys(start for start, _ in places)
    bodies = ((start, body) for start, body in places if body)
    for start, repeated in chain(bodies, product(starts, letters)):
        for end in ENDS:
            yield _Attack(start, repeated, end)


def _repeats(nodes: Any, start: str) -> Iterator[tuple[str, str]]:
    """For each repeat: what is matched up to it, and what it matches once."""
    for node in nodes:
        for part in _parts(node):
            if _is_repeat(node):
                for once in (False, True):
                    yield start, _sample(part, once=once)
            yield from _repeats(part, start)
        start += _sample([node], once=True)


def _parts(node: tuple[Any, Any]) -> Sequence[Any]:
    """What a node of the tree is made of, if it is made of others."""
    name, value = str(node[0]), node[1]
    if name == "BRANCH":
        return list(value[1])
    if name == "ATOMIC_GROUP":
        return [value]
    if name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"} or _is_repeat(node):
        return [value[-1]]
    return []


def _is_repeat(node: tuple[Any, Any]) -> bool:
    return str(node[0]).endswith("_REPEAT")


def _literals(nodes: Any) -> Iterator[str]:
    for node in nodes:
        if str(node[0]) == "LITERAL":
            yield chr(node[1])
        for part in _parts(node):
            yield from _literals(part)


def _sample(nodes: Any, *, once: bool) -> str:
    """A text that ``nodes`` match; with what may be left out in it ``once``, or left out."""
    return "".join(_sample_of(node, once) for node in nodes)


def _sample_of(node: tuple[Any, Any], once: bool) -> str:
    name, value = str(node[0]), node[1]
    if name == "LITERAL":
        return chr(value)
    if name in {"ANY", "NOT_LITERAL", "IN"}:
        return next((letter for letter in _candidates(value) if _is_in(letter, node)), "")
    if _is_repeat(node):
        return _sample(value[-1], once=once) * int(value[0] or once)
    if name in {"BRANCH", "SUBPATTERN", "ATOMIC_GROUP"}:
        return _sample(_parts(node)[0], once=once)
    return ""  # An assertion or a reference: it takes no text, or one that came before.


def _candidates(value: Any) -> Iterator[str]:
    yield from ALPHABET
    yield from map(chr, range(32, 256))
    for item in value if isinstance(value, list) else ():
        if str(item[0]) in {"LITERAL", "RANGE"}:
            yield chr(item[1] if str(item[0]) == "LITERAL" else item[1][0])


def _is_in(letter: str, node: tuple[Any, Any]) -> bool:
    """Whether a node that matches one of several characters matches this one."""
    name, value = str(node[0]), node[1]
    if name == "ANY":
        return True
    if name == "NOT_LITERAL":
        return letter != chr(value)
    is_negated = str(value[0][0]) == "NEGATE"
    return is_negated != any(_matches(letter, item) for item in value[int(is_negated) :])


def _matches(letter: str, item: tuple[Any, Any]) -> bool:
    name, value = str(item[0]), item[1]
    if name == "LITERAL":
        return letter == chr(value)
    if name == "RANGE":
        return bool(value[0] <= ord(letter) <= value[1])
    *_, negation, category = ("", *str(value).split("_"))
    return _CATEGORIES[category](letter) is not (negation == "NOT")
