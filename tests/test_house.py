"""How the package is laid out: who may import whom, and how long a file may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import django_hitcount

ROOT = Path(django_hitcount.__file__).parent

WINGS = (
    "importing",
    "reports",
    "maintenance",
    "buffers",
    "refusals",
    "visitors",
    "outages",
    "db",
    "counters",
    "conf",
)
"""From top to bottom. A wing imports only wings below it; the root may import all of them."""

BELOW_ALL_WINGS = {
    "django_hitcount.defaults",
    "django_hitcount.exceptions",
    "django_hitcount.signals",
}

FOLDERS_OF_THE_ROOT = {
    *("admin", "compat", "management", "migrations", "pages", "rest_framework", "templatetags"),
    *("locale", "static", "templates"),
}

LONGEST_FILE = 300

SOURCES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): (
        path.read_text()
    )
    for path in ROOT.rglob("*.py")
    if "migrations" not in path.parts
}
"""The text of each module, by the module's name."""


def imports(source: str) -> Iterator[str]:
    """The modules of ours that a text imports: at its top, in functions, and for types alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (module_of(alias.name) for alias in node.names if is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"relative import of {node.module}"
            if is_ours(str(node.module)):
                yield from (module_of(f"{node.module}.{alias.name}") for alias in node.names)


def is_ours(name: str) -> bool:
    return name.split(".")[0] == "django_hitcount"


def module_of(name: str) -> str:
    """The module that a dotted name stands for, or that defines it."""
    return name if name in SOURCES else name.rpartition(".")[0]


def wing_of(module: str) -> str | None:
    """The wing that a module is in; None if it is at the root."""
    folder = module.split(".")[1:2]
    return folder[0] if folder and folder[0] in WINGS else None


def is_allowed(importer: str, imported: str) -> bool:
    if imported in BELOW_ALL_WINGS:
        return True
    if importer in BELOW_ALL_WINGS:
        return False
    above, below = wing_of(importer), wing_of(imported)
    if above is None or above == below:
        return True
    return below is not None and WINGS.index(above) < WINGS.index(below)


def test_a_wing_imports_only_wings_below_it():
    assert [
        f"{importer} imports {imported}"
        for importer, source in SOURCES.items()
        for imported in sorted({*imports(source)})
        if not is_allowed(importer, imported)
    ] == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("db.slots", "recording"),
        ("db.slots", "querysets"),
        ("db.slots", "buffers.base"),
        ("conf.config", "db.tables"),
        ("maintenance.flushing", "tasks"),
        ("signals", "conf"),
    ],
)
def test_importing_upwards_is_not_allowed(importer, imported):
    assert not is_allowed(f"django_hitcount.{importer}", f"django_hitcount.{imported}")


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import django_hitcount.tasks", "tasks"),
        ("import django_hitcount.tasks as jobs", "tasks"),
        ("from django_hitcount import recording", "recording"),
        ("from django_hitcount import conf as settings", "conf"),
        ("from django_hitcount.conf import get_config", "conf"),
        ("from django_hitcount.buffers.base import Buffer", "buffers.base"),
        ("from django_hitcount.buffers import *", "buffers"),
    ],
)
@pytest.mark.parametrize("within", ["", "if TYPE_CHECKING:\n ", "def f():\n "])
def test_every_import_is_seen(within, line, module):
    assert [*imports(within + line)] == [f"django_hitcount.{module}"]


def test_only_settings_are_imported_by_a_dotted_path():
    """
    No other test here sees such an import. The package itself loads its public names late, and a
    tag and the token of a cached page take the name of a project's model.
    """
    by_path = re.compile(r"\b(import_string|import_module|__import__|get_model|exec|eval)\b")

    importers = {module for module, source in SOURCES.items() if by_path.search(source)}
    assert importers == {
        "django_hitcount",
        "django_hitcount.beacon",
        "django_hitcount.conf.kinds",
        "django_hitcount.importing.rows",
        "django_hitcount.importing.tables",
        "django_hitcount.templatetags.hitcount",
    }


def test_tags_do_not_need_the_admin():
    """Django imports all tags of a site, also if the admin is not installed."""
    assert [
        f"{module} imports {imported}"
        for module, source in SOURCES.items()
        if module.startswith("django_hitcount.templatetags")
        for imported in imports(source)
        if imported.startswith("django_hitcount.admin")
    ] == []


def test_modules_import_each_other_in_no_circle():
    left = {module: {*imports(source)} for module, source in SOURCES.items()}
    while free := {module for module, imported in left.items() if not imported & left.keys()}:
        left = {module: imported for module, imported in left.items() if module not in free}

    assert left == {}


def test_every_folder_is_a_wing_or_of_the_root():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"__pycache__"}

    assert folders == {*WINGS, *FOLDERS_OF_THE_ROOT}


@pytest.mark.parametrize(
    "path",
    sorted([*ROOT.rglob("*.py"), *ROOT.rglob("*.lua")]),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_file_is_not_long(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE
