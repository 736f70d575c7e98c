"""Lists of regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Patterns(tuple[re.Pattern[str], ...]):
    """Compiled regular expressions that ignore case."""

    __slots__ = ()

    def match_in(self, text: str) -> bool:
        """Return whether one of them matches anywhere in ``text``."""
        return any(pattern.search(text) for pattern in self)


NO_PATTERNS = Patterns()


class PatternError(ValueError):
    """A regular expression is invalid."""

    def __init__(self, pattern: str, error: Exception) -> None:
        super().__init__(f"invalid regular expression: {pattern!r} ({error})")


def compile_patterns(expressions: Iterable[str]) -> Patterns:
    """Compile regular expressions. Raises PatternError for the first invalid one."""
    return Patterns(map(_compile, expressions))


def _compile(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as exc:
        raise PatternError(expression, exc) from exc
