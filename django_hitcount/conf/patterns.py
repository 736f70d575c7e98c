"""Lists of regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Patterns(tuple[re.Pattern[str], ...]):
    """Compiled regular expressions; case plays no part."""

    __slots__ = ()

    def match_in(self, text: str) -> bool:
        """Whether one of them is found anywhere in ``text``."""
        return any(pattern.search(text) for pattern in self)


NO_PATTERNS = Patterns()


class PatternError(ValueError):
    """A pattern is no regular expression."""

    def __init__(self, pattern: str, error: Exception) -> None:
        super().__init__(str(error))
        self.pattern = pattern


def compiled(expressions: Iterable[str]) -> Patterns:
    """Patterns; raises PatternError for the first expression that is none."""
    return Patterns(map(_compiled, expressions))


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as exc:
        raise PatternError(expression, exc) from exc
