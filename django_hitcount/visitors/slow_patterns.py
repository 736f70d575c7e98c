"""
Find regular expressions that a client can make slow by sending a certain user agent.

The texts to try are built from the pattern itself. They begin with what it matches before one of
its repeats, continue with what the repeat matches, many times, and end with something that the
pattern does not match.
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
except ImportError:  # The module is not part of Python's public interface.
    parser = None

SLOW_SECONDS = 0.01
"""A search that takes longer is reported. In this time, dozens of hits can be recorded."""

GROWTH = 1.25
"""
How many times longer each text is than the one before.

If the time doubles with each character, the first slow text takes about twenty times SLOW_SECONDS.
With larger steps, it could take hours.
"""

SECONDS_PER_PATTERN = 0.5
"""How much processor time the tries of a pattern may take, so that the check stays fast."""

MOST_ATTACKS = 500
"""How many ways to build texts are tried for a pattern."""

ALPHABET = "a1 /.;-_()AZ09~\xe9"
"""A letter of each class that patterns distinguish. The letters in the pattern are tried, too."""

ENDS = ("", "!", "\xe9")
"""Ends of texts. A pattern that does not match at the end tries every other way to match."""

_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda letter: letter.isalnum() or letter == "_",
}


class SlowText(NamedTuple):
    """A user agent that a pattern takes long to search."""

    user_agent: str
    seconds: float


@lru_cache(maxsize=256)
def find_slow_text(pattern: re.Pattern[str], longest: int) -> SlowText | None:
    """
    Find a text of up to ``longest`` characters that ``pattern`` takes more than 10 ms to search.

    Takes up to half a second of processor time, and far less with most patterns. May miss some
    slow patterns.
    """
    give_up_at = time.thread_time() + SECONDS_PER_PATTERN
    for attack in islice(_build_attacks(pattern), MOST_ATTACKS):
        for text in attack.texts(longest):
            seconds = _measure_search(pattern, text)
            if seconds > SLOW_SECONDS:
                return SlowText(text, seconds)
            if time.thread_time() > give_up_at:
                return None
    return None


def _measure_search(pattern: re.Pattern[str], text: str) -> float:
    """Return the processor time of a search, which other processes do not affect."""
    began_at = time.thread_time()
    pattern.search(text)
    return time.thread_time() - began_at


class _Attack(NamedTuple):
    start: str
    repeated: str
    end: str

    def texts(self, longest: int) -> Iterator[str]:
        """Yield longer and longer texts, up to ``longest`` characters."""
        most = (longest - len(self.start) - len(self.end)) // len(self.repeated)
        times = 2
        while times < most:
            yield self.start + self.repeated * times + self.end
            times = max(times + 1, int(times * GROWTH))
        yield self.start + self.repeated * most + self.end


def _build_attacks(pattern: re.Pattern[str]) -> Iterator[_Attack]:
    places = [("", "")]
    letters = ALPHABET
    if parser:
        tree = parser.parse(pattern.pattern, pattern.flags)
        places += _find_repeats(tree, "")
        letters += "".join({*_find_literals(tree)} - {*ALPHABET})
    starts = dict.fromkeys(start for start, _ in places)
    bodies = ((start, body) for start, body in places if body)
    for start, repeated in chain(bodies, product(starts, letters)):
        for end in ENDS:
            yield _Attack(start, repeated, end)


def _find_repeats(nodes: Any, start: str) -> Iterator[tuple[str, str]]:
    """For each repeat, yield what is matched before it, and what it matches once."""
    for node in nodes:
        for part in _parts(node):
            if _is_repeat(node):
                for once in (False, True):
                    yield start, _build_sample(part, once=once)
            yield from _find_repeats(part, start)
        start += _build_sample([node], once=True)


def _parts(node: tuple[Any, Any]) -> Sequence[Any]:
    """Return the child nodes of a node, if it has any."""
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


def _find_literals(nodes: Any) -> Iterator[str]:
    for node in nodes:
        if str(node[0]) == "LITERAL":
            yield chr(node[1])
        for part in _parts(node):
            yield from _find_literals(part)


def _build_sample(nodes: Any, *, once: bool) -> str:
    """Return a text that ``nodes`` match. Optional parts are included ``once``, or left out."""
    return "".join(_sample_node(node, once) for node in nodes)


def _sample_node(node: tuple[Any, Any], once: bool) -> str:
    name, value = str(node[0]), node[1]
    if name == "LITERAL":
        return chr(value)
    if name in {"ANY", "NOT_LITERAL", "IN"}:
        return next((letter for letter in _candidates(value) if _is_in(letter, node)), "")
    if _is_repeat(node):
        return _build_sample(value[-1], once=once) * int(value[0] or once)
    if name in {"BRANCH", "SUBPATTERN", "ATOMIC_GROUP"}:
        return _build_sample(_parts(node)[0], once=once)
    return ""  # An assertion matches no text. A reference matches a text that is there already.


def _candidates(value: Any) -> Iterator[str]:
    yield from ALPHABET
    yield from map(chr, range(32, 256))
    for item in value if isinstance(value, list) else ():
        if str(item[0]) in {"LITERAL", "RANGE"}:
            yield chr(item[1] if str(item[0]) == "LITERAL" else item[1][0])


def _is_in(letter: str, node: tuple[Any, Any]) -> bool:
    """Return whether a node that matches a single character matches this one."""
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
