"""The functions in docs/consent.rst read what consent managers write."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from urllib.parse import quote

import pytest
from cookie_consent.models import Cookie, CookieGroup
from cookie_consent.util import dict_to_cookie_str
from django.core.cache import cache
from django.test import RequestFactory
from django.utils import timezone

from django_hitcount.refusals.consents import lacks_consent

PAGE = Path(__file__).parents[2] / "docs" / "consent.rst"
CATEGORIES = {"necessary": True, "preferences": False, "statistics": True, "marketing": False}


@pytest.fixture
def agrees(refuse):
    """Whether a cookie is consent, by one of the functions of the page."""

    def agrees(name: str, **cookies: str) -> bool:
        blocks = re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", PAGE.read_text())
        names: dict[str, object] = {}
        exec(next(textwrap.dedent(block) for block in blocks if f"def {name}(" in block), names)
        refuse(("django_hitcount.refusals.consent", {"predicate": names[name]}))
        request = RequestFactory().get("/")
        request.COOKIES = cookies
        return not lacks_consent(request, "views")

    return agrees


class TestCookiebot:
    def written(self, **categories: bool) -> str:
        """As its script writes it: an object of JavaScript, some characters of it encoded."""
        said = {**CATEGORIES, **categories}
        items = [f"{name}:{str(value).lower()}" for name, value in said.items()]
        text = ",".join(["{stamp:'abc+/=='", *items, "method:'explicit'", "ver:1}"])
        return quote(text, safe="{}:")

    def test_statistics(self, agrees):
        assert agrees("cookiebot", CookieConsent=self.written())
        assert not agrees("cookiebot", CookieConsent=self.written(statistics=False))
        assert not agrees("cookiebot", CookieConsent=self.written(statistics=False, marketing=True))

    @pytest.mark.parametrize("value", ["", "0", "-1", "statistics:true", "{nostatistics:true}"])
    def test_anything_else_is_not(self, agrees, value):
        assert not agrees("cookiebot", CookieConsent=value)
        assert not agrees("cookiebot")


class TestVanillaCookieconsent:
    def written(self, *categories: str, revision: int = 0) -> str:
        said = {"categories": categories, "revision": revision, "data": None, "services": {}}
        return quote(json.dumps(said, separators=(",", ":")), safe="")

    def test_statistics(self, agrees):
        assert agrees("vanilla_cookieconsent", cc_cookie=self.written("necessary", "statistics"))
        assert not agrees("vanilla_cookieconsent", cc_cookie=self.written("necessary"))

    def test_answer_to_an_earlier_question_is_none(self, agrees):
        written = self.written("statistics", revision=1)

        assert not agrees("vanilla_cookieconsent", cc_cookie=written)

    @pytest.mark.parametrize("value", ["", "{", "[]", "null", "{}", '{"revision":0}'])
    def test_anything_else_is_not(self, agrees, value, caplog):
        assert not agrees("vanilla_cookieconsent", cc_cookie=value)
        assert not agrees("vanilla_cookieconsent")
        assert caplog.text == ""


@pytest.mark.django_db
class TestDjangoCookieConsent:
    @pytest.fixture(autouse=True)
    def group(self) -> CookieGroup:
        cache.clear()
        group = CookieGroup.objects.create(varname="statistics", name="Statistics")
        Cookie.objects.create(cookiegroup=group, name="visits")
        yield group
        cache.clear()

    def written(self, answer: str) -> str:
        return dict_to_cookie_str({"optional": "-1", "statistics": answer})

    def test_accepted_after_the_newest_cookie_of_the_group(self, agrees, group):
        now = timezone.now().isoformat()

        assert agrees("django_cookie_consent", cookie_consent=self.written(now))

    def test_refusal_is_in_the_same_cookie(self, agrees):
        assert not agrees("django_cookie_consent", cookie_consent=self.written("-1"))

    def test_accepted_before_there_was_another_cookie_is_undecided(self, agrees, group):
        before = timezone.now().isoformat()
        Cookie.objects.create(cookiegroup=group, name="more")

        assert not agrees("django_cookie_consent", cookie_consent=self.written(before))

    def test_without_the_group_or_the_cookie(self, agrees):
        now = timezone.now().isoformat()

        assert not agrees("django_cookie_consent", cookie_consent=f"others={now}")
        assert not agrees("django_cookie_consent")
