"""How settings are declared: a dataclass is a table of them, and each field is one setting."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

from django_hitcount.conf.kinds import Kind, SettingError, is_dict

T = TypeVar("T")


def setting(default: object, kind: Kind[T]) -> T:
    """Declare a setting, or an option of a counter. ``default`` is as a project would set it."""
    return field(
        default_factory=lambda: kind.read("a default", default),
        metadata={"default": default, "kind": kind},
    )


def read_all(
    declared: Mapping[str, Mapping[str, Any]], place: str, given: Mapping[Any, object]
) -> tuple[dict[str, Any], list[SettingError]]:
    """Check and convert all values of a dict. Return them by field, and what is wrong."""
    values: dict[str, Any] = {}
    errors: list[SettingError] = []
    for name, value in given.items():
        try:
            if name not in declared:
                raise _unknown_key(place, name, [*declared])
            values[name.lower()] = declared[name]["kind"].read(f"{place}[{name!r}]", value)
        except SettingError as error:
            errors.append(error)
    return values, errors


def dict_of(table: type[T], hint: str) -> Kind[T]:
    """Return the kind of the dicts with the options that a dataclass declares."""
    declared = {column.name: column.metadata for column in fields(table)}  # type: ignore[arg-type]

    def convert(place: str, value: Mapping[object, object]) -> T:
        values, errors = read_all(declared, place, value)
        if errors:
            raise errors[0]
        return table(**values)

    return Kind(is_dict, hint, convert)


def _unknown_key(place: str, name: object, known: list[str]) -> SettingError:
    lowered = {key.lower(): key for key in known}
    close = difflib.get_close_matches(str(name).lower(), lowered, n=1, cutoff=0.5)
    hint = f"Did you mean {lowered[close[0]]!r}?" if close else f"Use one of {', '.join(known)}."
    return SettingError(place, f"Unknown key in {place}: {name!r}.", hint)
