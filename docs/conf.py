"""How Sphinx builds these pages: ``tox -e docs``."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django_hitcount",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
)
django.setup()

project = "django_hitcount"
copyright = "the authors of django_hitcount"  # noqa: A001  # The name that Sphinx asks for.
declared = ConfigParser()
declared.read(Path(__file__).parent.parent / "setup.cfg")
version = release = declared["metadata"]["version"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosectionlabel",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
highlight_language = "none"

# :ref:`Days <lists:days>` leads to the section "Days" of the page "lists".
autosectionlabel_prefix_document = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
python_use_unqualified_type_names = True

# Types of Django and Python have no page here. All other references must lead somewhere.
nitpicky = True
nitpick_ignore_regex = [("py:(class|data|obj|exc|attr)", r".*")]

html_theme = "furo"
html_title = "django_hitcount"
html_static_path = ["images"]
