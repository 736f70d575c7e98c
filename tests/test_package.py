"""What is shipped, and that all of it is documented."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path
from pkgutil import resolve_name

import pytest
from docutils.core import publish_doctree
from docutils.nodes import document

from django_hitcount import exceptions, refusals, visitors
from django_hitcount.counters.hits import REASONS
from tests import public_names

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.rst"), *ROOT.glob("*/README.rst")])
"""What package indexes and code hosts show. Sphinx checks the others: ``tox -e docs``."""
DOCS = "\n".join(path.read_text() for path in [*PAGES, *ROOT.glob("docs/*.rst")])
REFUSALS = [
    *(r.name for r in vars(refusals).values() if isinstance(r, refusals.Refusal)),
    # Made by functions that take options.
    *("permission", "preview", "group", "owner", "address", "user_agent", "consent"),
    *REASONS,
]
PATHS = sorted(
    path
    for path in {*re.findall(r"\bdjango_hitcount(?:\.\w+)+", DOCS)}
    if not re.fullmatch(
        r"django_hitcount\.([EW]\d\d\d|E|W|flush_hits|compact_hits|(?:add|view)_\w+|refusals\.\w+)",
        path,
    )
)
"""Names of Python objects. Checks, tasks, permissions and refusals have tests of their own."""
SOURCE = sorted((ROOT / "django_hitcount").rglob("*.py"))


def rendered(page: Path) -> document:
    """Docutils alone must render it: package indexes and code hosts use nothing else."""
    settings = {"halt_level": 2, "input_encoding": "utf-8"}
    return publish_doctree(page.read_text(), settings_overrides=settings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_is_valid(page):
    rendered(page)


def test_links_to_sections_lead_to_one():
    links = re.compile(r"<([^>\s#]*)#([^>\s]+)>`_")
    ids = {page: rendered(page).ids for page in PAGES}

    assert not [
        f"{page.name} links to {target}#{section}"
        for page in PAGES
        for target, section in links.findall(page.read_text())
        if not target.startswith("http")
        and section not in ids[(page.parent / target).resolve() if target else page]
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_images_lead_somewhere(page):
    targets = re.findall(r"(?:image|figure):: (\S+)|<([^>\s]+)>`_", page.read_text())

    for target in (one or other for one, other in targets):
        if not target.startswith(("http", "#")):
            assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("check", ["E001", "E002", "E003", "E004", "W001", "W002", "W003", "W004"])
def test_every_check_is_documented(check):
    assert f"django_hitcount.{check}" in (ROOT / "docs" / "checks.rst").read_text()


@pytest.mark.parametrize(
    "name", [*(f'"{name}"' for name in REFUSALS), *(f'"{name}"' for name in visitors.IDENTITIES)]
)
def test_every_reason_and_identity_is_documented(name):
    assert name in DOCS


INCLUDED = {"django_hitcount.urls", "django_hitcount.badges"}
"""What a project passes to include()."""


@pytest.mark.parametrize("path", PATHS)
def test_a_path_in_the_docs_can_be_imported_and_is_not_internal(path):
    resolve_name(path)

    assert is_public(path)


def is_public(path):
    """Not so are modules without names for projects, and names that are missing in ``__all__``."""
    where, *names = path.split(".")[1:]
    if where in public_names.FUNCTIONS or path in INCLUDED:
        return True
    if where == "compat":  # An app with the names of another package.
        return True
    if where == "pages":  # An app of its own.
        if not names:
            return True
        where, *names = f"pages.{names[0]}", *names[1:]
    return where in public_names.MODULES and (
        not names or names[0] in public_names.of_module(where) or where == "refusals"
    )


def test_the_example_project_imports_public_modules_alone():
    """The demo does not: it makes up a past that no function can record."""
    sources = [
        path.read_text()
        for folder in ("blog", "example")
        for path in (ROOT / "example_project" / folder).rglob("*.py")
    ]
    imported = {path for text in sources for path in re.findall(r"from (django_hitcount\S+)", text)}

    assert imported
    assert [path for path in imported if "." in path and not is_public(path)] == []


def test_exceptions_are_drawn_as_they_are():
    names = [n for n, x in vars(exceptions).items() if isinstance(x, type)]

    assert exceptions.__doc__
    assert all(name in exceptions.__doc__ for name in names)


def test_readme_has_the_command_that_ci_runs():
    commands = re.findall(
        r"^ +(python3 -m venv .*)$", (ROOT / "README.rst").read_text(), re.MULTILINE
    )

    assert [command.rsplit("/", 1)[1] for command in commands] == ["tox -e demo", "tox"]
    assert "README.rst" in (ROOT / ".ci" / "run").read_text()


def test_version_is_in_the_changelog():
    version = re.search(r"^version = (\S+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)

    assert version
    changelog = (ROOT / "docs" / "changelog.rst").read_text()
    assert re.search(rf"^{re.escape(version[1])} ", changelog, re.MULTILINE)


@pytest.mark.parametrize("path", SOURCE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_inward_imports_the_edge(path):
    """Plain functions are usable without Celery, templates and the admin."""
    edge = {"tasks.py", "apps.py", "checks.py", "admin.py"}
    if path.name in edge or {"admin", "templatetags", "management"} & set(path.parts):
        return
    imported = re.findall(r"^\s*(?:from|import) (\S+)", path.read_text(), re.MULTILINE)

    assert not [name for name in imported if name.startswith(("celery", "django.template"))]
    assert not [name for name in imported if "admin" in name]


def test_only_conf_reads_the_setting():
    readers = {path.name for path in SOURCE if 'settings, "HITCOUNT"' in path.read_text()}

    assert readers == {"config.py", "testing.py"}


def test_wheel_has_all_that_is_needed_and_nothing_else():
    # A build may leave metadata beside the source; only an installed package has a RECORD.
    installed = [
        found
        for found in distributions(name="django-buffered-hitcount")
        if found.read_text("RECORD")
    ]
    if not installed:
        pytest.skip("the package is not installed; tox installs its wheel")
    shipped = {str(file) for file in installed[0].files or ()}
    scripts = {str(p.relative_to(ROOT)) for p in ROOT.glob("django_hitcount/**/*.lua")}

    assert "django_hitcount/buffers/redis/lua/record.lua" in scripts
    messages = {str(p.relative_to(ROOT)) for p in ROOT.glob("django_hitcount/**/*.mo")}
    assert len(messages) == 4
    assert scripts | messages | {"django_hitcount/py.typed"} <= shipped
    assert {str(path.relative_to(ROOT)) for path in SOURCE} <= shipped
    assert not [name for name in shipped if name.startswith(("tests", "example", "benchmarks"))]


def test_design_names_places_that_exist():
    design = (ROOT / "docs" / "design.rst").read_text()
    places = re.sub(
        r"\s+", " ", design.split("\nWhere things are\n")[1].split("\nWords of the code\n")[0]
    )
    files = re.findall(
        r"``([\w/]+\.(?:py|lua))``(?:: ``([\w.]+)\(\)``)?", re.sub(r"\s+", " ", places)
    )

    assert len(files) > 10
    for file, function in files:
        source = (ROOT / "django_hitcount" / file).read_text()
        for name in filter(None, function.split(".")):
            assert re.search(rf"^ *(def|class) {name}\b", source, re.MULTILINE), (file, name)
