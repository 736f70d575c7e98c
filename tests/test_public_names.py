"""The public names: few, documented, and in the places where docs/reference.rst says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import django_hitcount
from django_hitcount.pages.templatetags import hitcount_pages
from django_hitcount.templatetags.hitcount import register
from tests import public_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REFERENCE = (DOCS / "reference.rst").read_text()


def documented(section: str) -> set[str]:
    """The names in the list of a section: Sphinx adds what their docstrings begin with."""
    text = re.split(r"\n[^\n]+\n=+\n", REFERENCE.split(f"\n{section}\n=")[1])[0]
    return {*re.findall(r"^   ([\w.]+)$", text, re.MULTILINE)}


def test_functions_are_documented():
    twins = {name for name in public_names.FUNCTIONS if name[0] == "a"}

    assert documented("Functions") == public_names.FUNCTIONS - twins
    assert {name[1:] for name in twins} <= public_names.FUNCTIONS


def test_other_names_are_documented():
    sections = (
        "Models and fields",
        "Admin, views and tasks",
        "Django REST framework",
        "Signals, exceptions and refusals",
        "Imports",
        "Tests",
    )
    expected = {f"{m}.{name}" for m in public_names.MODULES for name in public_names.of_module(m)}

    assert set().union(*map(documented, sections)) == expected - {
        "testing.aassert_hits",
        "views.acount_download",
    }


def test_tags_are_documented():
    """Each tag begins an entry; those of pages are in the example."""
    entries = "\n".join(re.findall(r"^``{.*", (DOCS / "tags.rst").read_text(), re.MULTILINE))
    example = (DOCS / "sites.rst").read_text()

    assert {*re.findall(r"``{(?:%|{ \w+\|) ?(\w+)", entries)} == {*register.tags, *register.filters}
    assert {*hitcount_pages.register.tags} <= {*re.findall(r"{% (\w+)", example)}


@pytest.mark.parametrize("name", sorted(public_names.FUNCTIONS))
def test_functions_come_from_the_package(name):
    assert name in dir(django_hitcount)
    found = getattr(django_hitcount, name)
    assert found.__name__ == name
    assert found.__doc__


def test_types_see_the_same_names():
    tree = ast.parse((ROOT / "django_hitcount" / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    typed = {
        alias.asname: node.module
        for node in imports
        for alias in node.names
        if node.module and node.module.startswith("django_hitcount.")
    }

    found = {
        name: f"django_hitcount.{module}"
        for module, names in django_hitcount._MODULES.items()
        for name in names.split()
    }
    assert typed == found


def test_settings_may_import_the_package():
    code = (
        "import sys, django_hitcount; dir(django_hitcount); assert 'django.db' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={}, cwd=ROOT)


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="'django_hitcount' has no attribute 'nothing'"):
        django_hitcount.nothing  # noqa: B018


def test_modules_of_the_package_can_still_be_imported():
    assert import_module("django_hitcount.conf").DEFAULT_COUNTER == "views"
