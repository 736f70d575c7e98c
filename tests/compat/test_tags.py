"""``{% load hitcount_tags %}``: templates of django-hitcount work as they are."""

from __future__ import annotations

import datetime
import json
import re

import pytest
from django.contrib.staticfiles.finders import find
from django.template import Context, Template, TemplateSyntaxError

from django_hitcount.beacon import read_token
from django_hitcount.counters.days import day_of
from django_hitcount.recording import record_hit
from tests.app.models import Article, Page
from tests.visiting import request_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def article(buffer) -> Article:
    """Five hits: two today, one yesterday, two a week ago."""
    article = Article.objects.create(title="Tea")
    for days, hits in ((0, 2), (1, 1), (7, 2)):
        record_hit(article, at=day_of() - datetime.timedelta(days=days), amount=hits)
    return article


def render(text: str, **context: object) -> str:
    return Template("{% load hitcount_tags %}" + text).render(Context(context))


@pytest.mark.parametrize(
    ("tag", "shown"),
    [
        ("{% get_hit_count for post %}", "5"),
        ("{% get_hit_count for post as total_hits %}<{{ total_hits }}>", "<5>"),
        ('{% get_hit_count for post within "days=2" %}', "3"),
        ("{% get_hit_count for post within days=2 %}", "3"),
        ("{% get_hit_count for post within  days=1,minutes=30 as n %}{{ n }}", "3"),
        ('{% get_hit_count for post within "days=1,minutes=30" %}', "3"),
        ('{% get_hit_count for post within "hours=1" %}', "2"),
        ('{% get_hit_count for post within "weeks=1" as week %}<{{ week }}>', "<3>"),
        ('{% get_hit_count for post within "days=8,seconds=0" as n %}{{ n }}', "5"),
        ('{% get_hit_count for post within "weeks=9999" %}', "5"),
        ("{% get_hit_count for page.article %}", "5"),
        (
            "{% if total %}{% endif %}{% get_hit_count for empty as n %}{% if n %}yes{% endif %}",
            "yes",
        ),
    ],
)
def test_every_form_shows_hits(article, tag, shown):
    empty = Article.objects.create(title="nobody came")
    context = {"post": article, "page": {"article": article}, "empty": empty}
    assert render(tag, **context) == shown


def test_showing_counts_nothing(article):
    for _ in range(2):
        assert render("{% get_hit_count for post %}", post=article, request=request_of(1)) == "5"


def test_variables_for_a_script(article):
    text = (
        "{% get_hit_count_js_variables for post as hitcount %}"
        "{{ hitcount.ajax_url }} {{ hitcount.pk }} {{ hitcount.hits }}"
    )
    url, pk, hits = render(text, post=article).split(" ")
    assert (url, hits) == ("/hitcount/hit/ajax/", "5")
    token = read_token(pk)
    assert token
    assert (token.model, token.object_id, token.purpose) == (Article, str(article.pk), "hit")


def test_inserted_variables(article):
    found = render("{% insert_hit_count_js_variables for post %}", post=article)
    pk, url = re.findall(r"hitcountPK : '(.*?)',hitcountURL : '(.*?)'", found)[0]
    assert json.loads(f'"{url}"') == "/hitcount/hit/ajax/"
    assert read_token(json.loads(f'"{pk}"'))


@pytest.mark.parametrize(("more", "logs"), [("", False), (" debug", True)])
def test_inserted_script(article, more, logs):
    found = render("{% insert_hit_count_js for post" + more + " %}", post=article)
    assert found.startswith("<script")
    assert found.count("hitcountPK: '") == found.count("</script>") == 1
    assert ("console.log" in found) == logs


def test_no_key_ends_a_script(buffer):
    page = Page.objects.create(path="</script>'\\")
    for tag in ("insert_hit_count_js_variables", "insert_hit_count_js"):
        found = render("{% " + tag + " for page %}", page=page)
        assert found.count("</script>") == 1
        assert found.count("'") % 2 == 0


def test_preview_shows_nothing(buffer):
    preview = Article(title="draft")
    for tag in ("get_hit_count", "insert_hit_count_js_variables", "insert_hit_count_js"):
        assert render("{% " + tag + " for post %}", post=preview) == ""
    text = "{% get_hit_count_js_variables for post as it %}<{{ it.pk }}{{ it.hits }}>"
    assert render(text, post=preview) == "<>"


@pytest.mark.parametrize(
    "tag",
    [
        "{% get_hit_count post %}",
        "{% get_hit_count for %}",
        "{% get_hit_count for post as %}",
        "{% get_hit_count for post as n within days=1 %}",
        "{% get_hit_count for post within days %}",
        "{% get_hit_count for post within 'years=1' %}",
        "{% get_hit_count for post within 'days=99999999999' %}",
        "{% get_hit_count for post for post %}",
        "{% get_hit_count_js_variables for post %}",
        "{% insert_hit_count_js_variables for post as n %}",
        "{% insert_hit_count_js for post loud %}",
        "{% get_hit_count for missing %}",
        "{% get_hit_count for post.title %}",
    ],
)
def test_mistakes_are_syntax_errors(article, tag):
    with pytest.raises(TemplateSyntaxError):
        render(tag, post=article)


def test_static_files_of_old_templates_exist():
    for name in ("jquery.postcsrf.js", "hitcount-jquery.js"):
        assert find(f"hitcount/{name}")
