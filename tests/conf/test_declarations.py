"""What docs/settings.rst says of each setting is what is declared."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest

from django_hitcount.conf import config
from django_hitcount.conf.config import SETTINGS, Config, CounterOptions
from django_hitcount.conf.kinds import Kind
from django_hitcount.conf.page_options import PageOptions

DOCS = (Path(__file__).parents[2] / "docs" / "settings.rst").read_text()

TYPES = {
    "bool": "True or False",
    "float": "number",
    "int": "whole number",
    "int | None": "whole number, or None",
    "int | tuple[kinds.Network, ...]": "whole number, or list of addresses and networks",
    'int | Literal["always", "daily"]': "string or whole number",
    'Literal["day", "month", "never"]': "string",
    "Mapping[str, CounterOptions]": "dict of dicts",
    "PageOptions": "dict",
    "str": "string",
    "str | None": "string, or None",
    "tuple[re.Pattern[str], ...]": "list of regular expressions",
    "tuple[str, ...]": "list of strings",
    "tuple[str, ...] | None": "list of strings, or None",
    "tuple[tuple[str, kinds.Options], ...]": "list of strings and dicts",
    "tuple[tuple[str, kinds.Options], ...] | None": "list of strings and dicts, or None",
}
"""How the docs call the types of the fields."""


OPTIONS, PAGE_OPTIONS = (
    {field.name: field.metadata for field in fields(table)}
    for table in (CounterOptions, PageOptions)
)


def sections_of(text: str, heading: str) -> dict[str, str]:
    """The parts of a text, by the names in their headings."""
    _, *parts = re.split(heading, text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


SECTIONS = sections_of(DOCS, r"^([A-Z_]+)\n=+\n")
OPTION_SECTIONS = sections_of(
    SECTIONS["COUNTERS"].split(":doc:`Identifying visitors")[0], r"^``\"(\w+)\"``\n"
)
PAGE_SECTIONS = sections_of(SECTIONS["PAGES"], r"^``\"(\w+)\"``\n")

DECLARED = [
    *((Config, name, declared, SECTIONS.get(name, "")) for name, declared in SETTINGS.items()),
    *(
        (CounterOptions, name, declared, OPTION_SECTIONS.get(name, ""))
        for name, declared in OPTIONS.items()
    ),
    *(
        (PageOptions, name, declared, PAGE_SECTIONS.get(name, ""))
        for name, declared in PAGE_OPTIONS.items()
    ),
]

each_setting = pytest.mark.parametrize(
    ("table", "name", "declared", "section"), DECLARED, ids=[name for _, name, *_ in DECLARED]
)


def one_line(text: str) -> str:
    return " ".join(text.split())


def meanings(table: type) -> Mapping[str, str]:
    """The docstring below each field."""
    tree = ast.parse(Path(inspect.getfile(table)).read_text())
    (body,) = (
        n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == table.__name__
    )
    return {
        field.target.id: one_line(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def test_every_setting_has_a_section_and_every_section_a_setting():
    assert SECTIONS.keys() == SETTINGS.keys()
    assert OPTION_SECTIONS.keys() == OPTIONS.keys()
    assert PAGE_SECTIONS.keys() == PAGE_OPTIONS.keys()


@each_setting
def test_meaning(table, name, declared, section):
    assert meanings(table)[name.lower()].removesuffix(".") in one_line(section)


@each_setting
def test_type(table, name, declared, section):
    (annotation,) = (str(f.type) for f in fields(table) if f.name == name.lower())
    called = TYPES[annotation.replace("'", '"')]
    shown = re.findall(r":Type: ([^\n]+)", section)[0]

    assert shown == called or shown.startswith(f"{called}, which")


@each_setting
def test_default(table, name, declared, section):
    shown = re.findall(r":Default: ``(.+?)``", section, re.DOTALL)[0]

    assert ast.literal_eval(shown) == declared["default"]


@each_setting
def test_limits_and_choices(table, name, declared, section):
    """What the system check says in its hint."""
    kind: Kind[object] = declared["kind"]
    in_digits = section.replace(",", "")

    assert [n for n in re.findall(r"\d+(?:\.\d+)?", kind.hint) if n not in in_digits] == []
    assert [text for text in re.findall(r"'(\w+)'", kind.hint) if f'"{text}"' not in section] == []


def test_default_limit_of_an_address():
    assert f"``{config.HITS_PER_ADDRESS}`` with a ``repeat`` rule" in OPTION_SECTIONS["per_address"]
