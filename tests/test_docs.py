"""The code in the pages of the documentation compiles. ``tox -e docs`` builds the pages."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest
from django.template import engines

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.rst", *ROOT.glob("docs/*.rst")])
BLOCK = re.compile(r"^( *)\.\. code-block:: (\S+)\n\n((?:\1   .*\n|\n)+)", re.MULTILINE)


def blocks(language: str) -> list[object]:
    """The code blocks of one language, named by page and number."""
    return [
        pytest.param(textwrap.dedent(body), id=f"{page.stem}-{number}")
        for page in PAGES
        for number, (_, name, body) in enumerate(BLOCK.findall(page.read_text()))
        if name == language
    ]


@pytest.mark.parametrize("block", blocks("python"))
def test_python_compiles(block):
    compile(block, "<block>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("block", blocks("python"))
def test_what_blocks_import_of_the_package_exists(block):
    imports = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    for node in imports:
        if node.module and node.module.partition(".")[0] == "django_hitcount":
            names = ", ".join(alias.name for alias in node.names)
            exec(f"from {node.module} import {names}", {})


@pytest.mark.parametrize("block", blocks("html+django"))
def test_templates_compile(block):
    loaded = "{% load hitcount %}" + block.replace("articles.Article", "blog.Article")
    engines["django"].from_string(loaded)


def test_all_blocks_are_of_these_languages():
    languages = {name for page in PAGES for _, name, _ in BLOCK.findall(page.read_text())}

    assert languages <= {"python", "html+django", "sh", "javascript"}


def test_comments_lead_to_pages_that_exist():
    sources = [
        *(ROOT / "django_hitcount").rglob("*.py"),
        *(ROOT / "django_hitcount").rglob("*.lua"),
    ]
    named = {name for path in sources for name in re.findall(r"docs/([\w-]+)", path.read_text())}

    assert named
    assert [name for name in named if not (ROOT / "docs" / f"{name}.rst").exists()] == []
