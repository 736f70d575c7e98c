"""The catalogues of messages are complete, and no text of the package is left out of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path

import django
import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_python
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from django.utils.translation.template import templatize

PACKAGE = Path(__file__).parent.parent / "django_hitcount"
LANGUAGES = {"ar": 6, "de": 2, "es": 3, "fr": 3}
"""How many plurals each has."""

KEYWORDS = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "npgettext": ((1, "c"), 2, 3),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
}
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[sd%]")
TEMPLATES = sorted((PACKAGE / "templates").rglob("*.*"))

each_language = pytest.mark.parametrize("language", LANGUAGES)


def catalog(language: str) -> Catalog:
    with (PACKAGE / "locale" / language / "LC_MESSAGES" / "django.po").open("rb") as file:
        return read_po(file, locale=language)


def messages(language: str) -> list[Message]:
    return [message for message in catalog(language) if message.id]


def key_of(message: Message) -> tuple[str | None, str]:
    context = message.context
    if isinstance(context, bytes):  # As read_mo() returns it.
        context = context.decode()
    return context, message.id if isinstance(message.id, str) else message.id[0]


def texts_of(message: Message) -> list[str]:
    """The translation, in all its forms."""
    return [message.string] if isinstance(message.string, str) else [*message.string]


def used() -> set[tuple[str | None, str]]:
    """The context and the text of each message in the code and the templates."""
    sources = [path.read_text() for path in PACKAGE.rglob("*.py")]
    sources += [templatize(path.read_text(), origin=str(path)) for path in TEMPLATES]
    return {found for source in sources for found in extract(source)}


def extract(source: str) -> Iterator[tuple[str | None, str]]:
    for _, function, texts, _ in extract_python(BytesIO(source.encode()), KEYWORDS, [], {}):
        found = [*texts] if isinstance(texts, tuple) else [texts]
        context = found.pop(0) if "p" in function.partition("gettext")[0] else None
        if found[0]:
            yield context, found[0]


def test_there_are_messages():
    assert len(used()) > 150
    assert ("percentage", "%(number)s%%") in used()


@each_language
def test_every_message_is_in_the_catalog_and_no_other(language):
    assert {key_of(message) for message in messages(language)} == used()


@each_language
def test_every_message_is_translated(language):
    poor = [
        message.id for message in messages(language) if message.fuzzy or not all(texts_of(message))
    ]

    assert poor == []
    assert not catalog(language).obsolete


@each_language
def test_every_plural_is_there(language):
    plurals = [m for m in messages(language) if not isinstance(m.id, str)]

    assert plurals
    assert {len(message.string) for message in plurals} == {LANGUAGES[language]}


@each_language
def test_placeholders_are_the_same(language):
    for message in messages(language):
        original = message.id if isinstance(message.id, str) else message.id[1]
        expected = sorted(PLACEHOLDER.findall(original))
        for number, text in enumerate(texts_of(message)):
            names = sorted(PLACEHOLDER.findall(text))
            is_one = not isinstance(message.id, str) and number <= 1
            # The form for one object may leave its number out, as the original does.
            assert names == expected or (is_one and {*names} <= {*expected}), text


@each_language
def test_django_says_the_same(language):
    """The catalogue of the admin comes before ours. What means something else has a context."""
    theirs: dict[tuple[str | None, str], list[list[str]]] = {}
    for path in Path(django.__file__).parent.rglob(f"locale/{language}/LC_MESSAGES/django.mo"):
        if "admindocs" not in path.parts:
            with path.open("rb") as file:
                for message in read_mo(file):
                    theirs.setdefault(key_of(message), []).append(texts_of(message))

    assert (None, "Yes") in theirs
    assert not [
        (message.id, theirs[key_of(message)])
        for message in messages(language)
        if texts_of(message) not in theirs.get(key_of(message), [texts_of(message)])
    ]


@each_language
def test_html_is_the_same(language):
    for message in messages(language):
        original = message.id if isinstance(message.id, str) else message.id[0]
        for text in texts_of(message):
            assert re.findall(r"<[^>]*>", text) == re.findall(r"<[^>]*>", original)


@each_language
def test_compiled_catalog_is_that_of_its_source(language):
    path = PACKAGE / "locale" / language / "LC_MESSAGES" / "django.mo"
    with path.open("rb") as file:
        compiled = {key_of(m): texts_of(m) for m in read_mo(file) if m.id}

    assert compiled == {key_of(m): texts_of(m) for m in messages(language)}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_have_no_text_that_is_not_marked(path):
    text = path.read_text()
    text = re.sub(r"{% comment.*?{% endcomment %}", "", text, flags=re.DOTALL)
    text = re.sub(r"{% blocktranslate.*?{% endblocktranslate %}", "", text, flags=re.DOTALL)
    text = re.sub(r"<code>.*?</code>|{% block bodyclass %}.*?{% endblock %}", "", text)
    text = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", "", text, flags=re.DOTALL)
    spoken = re.findall(r'(?:title|alt|aria-label|placeholder)="([^"]*)"', text)
    shown = re.sub(r"<[^>]*>|&\w+;", " ", text)

    assert re.findall(r"[^\W\d_]{2,}", " ".join([shown, *spoken])) == []


SHOWN = {"description", "empty_label", "help_text", "label", "message", "reason", "title"}
"""Keywords of Django and of ours whose values people read."""


def names_of(node: ast.keyword | ast.Assign) -> set[str]:
    """What a value is passed as, or assigned to."""
    if isinstance(node, ast.keyword):
        return {node.arg or ""}
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


@pytest.mark.parametrize("folder", ["admin", "reports", "refusals"])
def test_code_has_no_text_that_is_not_marked(folder):
    for path in (PACKAGE / folder).glob("*.py"):
        tree = ast.parse(path.read_text())
        shown = [
            node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword | ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            and SHOWN & names_of(node)
        ]
        assert [text for text in shown if re.search(r"[^\W\d_]{2,}", text)] == [], path


def test_no_message_is_put_together_before_it_is_translated():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in KEYWORDS:
                texts = [*node.args][: 3 if "n" in node.func.id.partition("gettext")[0] else 2]
                assert not [t for t in texts if isinstance(t, ast.JoinedStr)], ast.dump(node)


def test_extraction_finds_what_it_looks_for():
    source = 'pgettext("c", "a"); ngettext("one", "many", 2); _("x")'
    template = templatize(StringIO('{% translate "y" %}').getvalue())

    assert [*extract(source)] == [("c", "a"), (None, "one"), (None, "x")]
    assert [*extract(template)] == [(None, "y")]
