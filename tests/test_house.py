"""How the package is laid out: who may import whom."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import django_hitcount

ROOT = Path(django_hitcount.__file__).parent

WINGS = (
    "maintenance",
    "buffers",
    "refusals",
    "visitors",
    "outages",
    "db",
    "counters",
    "conf",
)
"""From top to bottom, as docs/design.rst says."""

EVERYBODY_IMPORTS = {"exceptions", "signals"}

DJANGO_LOOKS_HERE = {"management", "migrations", "templatetags"}

LONGEST_FILE = 300

MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if "migrations" not in path.parts
}


def imported_by(module: str) -> Iterator[str]:
    """The modules of ours that a module imports: at the top, in functions, and for typing alone."""
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module} imports {node.module!r} by a relative path"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "django_hitcount":
                yield name if name in MODULES else name.rpartition(".")[0]


def wing_of(module: str) -> str | None:
    """The wing that a module is in; None if it is at the root."""
    _, _, path = module.partition(".")
    return path.split(".")[0] if path.split(".")[0] in WINGS else None


def breaks_rule(importer: str, imported: str) -> bool:
    wing, other = wing_of(importer), wing_of(imported)
    if (
        wing is None
        or wing == other
        or imported.removeprefix("django_hitcount.") in (EVERYBODY_IMPORTS)
    ):
        return False
    return other is None or WINGS.index(other) <= WINGS.index(wing)


def test_a_wing_imports_only_wings_below_it():
    assert [
        f"{importer} imports {imported}"
        for importer in sorted(MODULES)
        for imported in sorted({*imported_by(importer)})
        if breaks_rule(importer, imported)
    ] == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("django_hitcount.db.slots", "django_hitcount.recording"),
        ("django_hitcount.db.slots", "django_hitcount.buffers.base"),
        ("django_hitcount.conf.config", "django_hitcount.db.tables"),
        ("django_hitcount.maintenance.flushing", "django_hitcount.tasks"),
    ],
)
def test_importing_upwards_breaks_the_rule(importer, imported):
    assert breaks_rule(importer, imported)


def test_every_import_of_ours_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "lazy.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from django_hitcount.buffers import Buffer\n"
        "def f():\n"
        "    from django_hitcount import recording\n"
        "    import django_hitcount.tasks\n"
    )
    monkeypatch.setitem(MODULES, "django_hitcount.db.lazy", path)

    assert {*imported_by("django_hitcount.db.lazy")} == {
        "django_hitcount.buffers",
        "django_hitcount.recording",
        "django_hitcount.tasks",
    }


def test_every_folder_is_a_wing_or_one_that_django_looks_for():
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}

    assert folders == {*WINGS, *DJANGO_LOOKS_HERE, "querysets"}


def test_modules_import_each_other_in_no_circle():
    left = {module: {*imported_by(module)} - {module} for module in MODULES}
    while free := {module for module, imports in left.items() if not imports & left.keys()}:
        left = {module: imports for module, imports in left.items() if module not in free}

    assert left == {}


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.[pl][yu]*")), ids=lambda path: path.name)
def test_a_file_holds_one_thing(path):
    assert len(path.read_text().splitlines()) <= LONGEST_FILE
