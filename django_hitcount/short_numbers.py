"""Write large numbers in few characters: 1.2K, 3.4M."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import pgettext

__all__ = ["format_short"]

THOUSAND = 1000


def format_short(number: int) -> str:
    """
    Write ``number`` with one decimal below ten of a unit, and none above: 999, 1.2K, 12K, 3.4M.

    Rounds to the nearest value, halves away from zero. T, for 10^12, is the largest unit: above it,
    digits are grouped, as in 9,223,372T, the largest number in a table. The separators, the letters
    and their place are those of the active language.
    """
    number = number + 0  # Evaluates a lazy object, which has no minus.
    sign, size = (-1, -number) if number < 0 else (1, number)
    unit, (text, *larger) = 1, _units()
    while larger and _divide(size, unit) >= THOUSAND:
        unit, (text, *larger) = unit * THOUSAND, larger
    tenths = _divide(10 * size, unit)
    has_decimal = unit > 1 and tenths < 100 and tenths % 10
    value = sign * tenths / 10 if has_decimal else sign * _divide(size, unit)
    decimals = 1 if has_decimal else 0
    return text % {"number": number_format(value, decimal_pos=decimals, force_grouping=True)}


def _units() -> list[str]:
    """How numbers below a thousand are written, then thousands, millions and so on."""
    return [
        "%(number)s",
        pgettext("short number, thousands", "%(number)sK"),
        pgettext("short number, millions", "%(number)sM"),
        pgettext("short number, billions", "%(number)sB"),
        pgettext("short number, trillions", "%(number)sT"),
    ]


def _divide(size: int, unit: int) -> int:
    """The nearest whole number; halves are rounded up."""
    return (2 * size + unit) // (2 * unit)
