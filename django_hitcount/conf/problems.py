"""What is wrong with a setting."""

from __future__ import annotations


class Problem(ValueError):
    """What is wrong with one setting, and the fix."""

    def __init__(self, setting: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.setting = setting
        self.message = message
        self.hint = hint


def wrong_value(name: str, value: object, hint: str) -> Problem:
    return Problem(name, f"HITCOUNT[{name!r}] is {value!r}.", hint)
