from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_hitcount.conf import get_config


@pytest.mark.parametrize(
    ("pages", "problem", "fix"),
    [
        (["/admin/"], "Invalid value for HITCOUNT['PAGES']", "Set it to a dict"),
        ({"excluded": []}, "Unknown key in HITCOUNT['PAGES']: 'excluded'", "mean 'exclude'"),
        ({"exclude": "/admin/"}, "['PAGES']['exclude']: '/admin/'", "Set it to a list"),
        ({"exclude": ["admin"]}, "contains an invalid prefix: 'admin'", "Begin it with a slash"),
        ({"query": [""]}, "contains an invalid item: ''", "Use a string"),
        ({"strip_slash": 1}, "['PAGES']['strip_slash']: 1", "Set it to True or False"),
        ({"new_per_hour": 0}, "['PAGES']['new_per_hour']: 0", "from 1 to 1000000"),
        ({"counter": None}, "['PAGES']['counter']: None", "Set it to a string"),
        (
            {"counter": "visits"},
            "['counter'] names 'visits'",
            "HITCOUNT['COUNTERS']['visits'] = {}",
        ),
        ({"not_found": "lost"}, "['not_found'] names 'lost'", "HITCOUNT['COUNTERS']['lost'] = {}"),
    ],
)
def test_error_names_the_value_and_the_fix(settings, pages, problem, fix):
    settings.HITCOUNT = {"PAGES": pages}

    with pytest.raises(ImproperlyConfigured) as error:
        get_config()
    assert problem in str(error.value)
    assert fix in str(error.value)


def test_options_are_merged_with_the_defaults(settings):
    settings.HITCOUNT = {"COUNTERS": {"lost": {}}, "PAGES": {"not_found": "lost"}}
    pages = get_config().pages

    assert (pages.not_found, pages.counter, pages.exclude) == ("lost", "views", ("/admin/",))
