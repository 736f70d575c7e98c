"""The recipes of docs/apis.rst, as code that tests run."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.app.models import Article

PAGE = (Path(__file__).parents[2] / "docs" / "apis.rst").read_text()
BLOCK = r"^( *)\.\. code-block:: {}\n\n((?:\1   .*\n|\n)+)"


def blocks(heading: str, language: str) -> list[str]:
    """The code of a section."""
    text = re.split(r"\n[^\n]+\n=+\n", PAGE.split(f"\n{heading}\n=")[1])[0]
    found = re.findall(BLOCK.format(re.escape(language)), text, re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


@contextmanager
def articles_app() -> Iterator[None]:
    """Let ``articles.models`` be the models of the tests."""
    models = ModuleType("articles.models")
    models.Article = Article  # type: ignore[attr-defined]
    sys.modules |= {"articles": ModuleType("articles"), "articles.models": models}
    yield
    del sys.modules["articles"], sys.modules["articles.models"]


def run(heading: str, **names: Any) -> dict[str, Any]:
    """Run the code of a section, and return what it defines."""
    # Annotations are looked up in the module that a class names, and apps of models by its name.
    name = f"tests.app.recipe_{heading.split()[-1].lower().replace('-', '_')}"
    module = sys.modules[name] = ModuleType(name)
    made = vars(module)
    made.update(names)
    with articles_app():
        for code in blocks(heading, "python"):
            exec(
                compile(code, f"docs/apis.rst: {heading}", "exec", dont_inherit=True), vars(module)
            )
    return made
