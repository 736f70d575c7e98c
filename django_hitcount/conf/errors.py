"""The error for a wrong setting."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured


class SettingError(ImproperlyConfigured):
    """HITCOUNT has a wrong value: ``message`` says what is wrong, and ``hint`` how to fix it."""

    def __init__(self, setting: str, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")
        self.setting = setting
        self.message = message
        self.hint = hint


def invalid_value(name: str, value: object, hint: str) -> SettingError:
    """Return the error for a key of HITCOUNT with a wrong value."""
    return SettingError(name, f"Invalid value for HITCOUNT[{name!r}]: {value!r}.", hint)


def invalid_item(name: str, item: object, hint: str) -> SettingError:
    """Return the error for a key of HITCOUNT whose list has a wrong item."""
    return SettingError(name, f"Invalid item in HITCOUNT[{name!r}]: {item!r}.", hint)
