"""Large numbers in few characters."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.utils.functional import SimpleLazyObject
from django.utils.translation import override
from hypothesis import given
from hypothesis import strategies as st

from django_hitcount.reading import Visitors
from django_hitcount.templatetags.hitcount import format_short


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (1_000, "1K"),
        (1_049, "1K"),
        (1_050, "1.1K"),
        (1_234, "1.2K"),
        (9_949, "9.9K"),
        (9_950, "10K"),
        (12_345, "12K"),
        (999_499, "999K"),
        (999_500, "1M"),
        (3_400_000, "3.4M"),
        (999_500_000, "1B"),
        (2_100_000_000_000, "2.1T"),
        (999_499_999_999_999, "999T"),
        (1_234_500_000_000_000, "1,235T"),
        (2**63 - 1, "9,223,372T"),
        (10**30, "1,000,000,000,000,000,000T"),
        (-(10**18), "-1,000,000T"),
        (-1_234, "-1.2K"),
        (-999_500, "-1M"),
    ],
)
def test_numbers_are_rounded_to_few_digits(number, text):
    assert format_short(number) == text


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ["1.2K", "1,235T"]),
        ("de", ["1,2\xa0Tsd.", "1.235\xa0Bio."]),
        ("pl", ["1,2K", "1\xa0235T"]),
    ],
)
def test_separators_are_those_of_the_language(language, texts):
    with override(language):
        assert [format_short(number) for number in (1_234, 1_234_500_000_000_000)] == texts


@given(st.integers(0, 10**18))
def test_no_number_is_off_by_more_than_a_twentieth(number):
    text = format_short(number)
    unit = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}.get(text[-1], 1)

    assert abs(float(text.rstrip("KMBT").replace(",", "")) * unit - number) <= number / 20


@pytest.mark.parametrize(
    ("value", "text"),
    [(12_345, "12K"), ("", ""), (None, "None"), ("many", "many"), (Visitors(1_234, 1), "1.2K")],
)
def test_filter_leaves_what_is_no_number_alone(value, text):
    template = Template("{% load hitcount %}{{ value|short_number }}")

    assert template.render(Context({"value": value})) == text


@pytest.mark.parametrize(("number", "text"), [(1_500, "1.5K"), (-1_500, "-1.5K"), (7, "7")])
def test_number_that_is_read_when_it_is_shown(number, text):
    template = Template("{% load hitcount %}{{ value|short_number }}")

    assert template.render(Context({"value": SimpleLazyObject(lambda: number)})) == text
