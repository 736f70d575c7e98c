"""Which refusals are tried, in which order, and what happens to their errors."""

from __future__ import annotations

import logging
import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from django_hitcount.exceptions import InvalidArgument
from django_hitcount.refusals import bot
from django_hitcount.refusals.registry import (
    HitContext,
    check_refusals,
    find_refusal,
    get_refusals,
    reasons_by_name,
    refusal,
)
from tests.app.models import Article
from tests.refusals.reasons import BUILT_IN, get, reason

pytestmark = pytest.mark.usefixtures("nothing_fails")


OWN = f"{__name__}."


@refusal("preview", "An editor looks at a draft.")
def preview(context: HitContext) -> bool:
    return "preview" in context.request.GET


@refusal("broken", "It is broken.")
def broken(context: HitContext) -> bool:
    raise ZeroDivisionError


def parameter(name: str):
    return refusal("parameter", "...")(lambda context: name in context.request.GET)


def paths(prefix: str = "/drafts/"):
    return refusal("path", "...")(lambda context: context.request.path.startswith(prefix))


class TestList:
    @pytest.mark.parametrize("order", [["method", "bot"], ["bot", "method"]])
    def test_first_that_holds_gives_the_reason(self, refuse, order):
        refuse(*(f"{BUILT_IN}{name}" for name in order))

        assert reason(RequestFactory().head("/")) == order[0]

    def test_empty_list_refuses_nothing(self, refuse):
        refuse()

        assert reason(RequestFactory().post("/")) is None

    def test_own_refusal(self, refuse):
        refuse(f"{OWN}preview")

        assert reason(get("/?preview")) == "preview"
        assert reason(get()) is None

    def test_own_refusal_with_options_as_often_as_wanted(self, refuse):
        refuse((f"{OWN}parameter", {"name": "a"}), (f"{OWN}parameter", {"name": "b"}))

        assert [reason(get(path)) for path in ("/?a", "/?b")] == ["parameter"] * 2
        assert reason(get("/?c")) is None

    def test_own_refusal_whose_options_may_be_left_out(self, refuse):
        refuse(f"{OWN}paths")

        assert reason(get("/drafts/1/")) == "path"
        assert reason(get("/articles/1/")) is None

    def test_error_in_a_refusal_is_logged_and_refuses_nothing(self, refuse, caplog):
        refuse(f"{OWN}broken", f"{OWN}preview")

        assert reason(get()) is None
        assert reason(get("/?preview")) == "preview"
        assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError] * 2


class TestCall:
    """record_hit() gets a list of refusals in place of those of the settings."""

    def test_function_is_called_with_the_context_of_the_hit(self):
        asked = []
        context = HitContext(get(), Article(pk=7), "downloads")
        find_refusal(context, check_refusals([asked.append]))

        assert asked == [context]

    def test_they_replace_those_of_the_settings(self):
        assert reason(RequestFactory().post("/")) == "method"
        assert reason(RequestFactory().post("/"), refusals=[bot]) == "bot"
        assert reason(RequestFactory().post("/"), refusals=[]) is None

    def test_those_of_the_settings_can_be_extended(self):
        asked = []

        assert reason(get(Purpose="prefetch"), refusals=[*get_refusals(), asked.append]) == (
            "prefetch"
        )
        assert asked == []
        assert reason(get(), refusals=[*get_refusals(), lambda context: True]) == "caller"

    @pytest.mark.parametrize(("answer", "expected"), [(True, "caller"), (False, None)])
    def test_function_says_so(self, answer, expected):
        assert reason(get(), refusals=(lambda context: answer,)) == expected

    def test_refusal_gives_its_name(self):
        assert reason(get("/?preview"), refusals=[preview]) == "preview"
        assert reason(get(), refusals=[preview]) is None

    @pytest.mark.parametrize("item", ["django_hitcount.refusals.staff", 5, "", 0, []])
    def test_must_be_functions_or_refusals(self, item):
        with pytest.raises(InvalidArgument, match=r"Invalid item of refusals: .*not its dotted"):
            reason(get(), refusals=[item])

    @pytest.mark.parametrize("refusals", ["bot", preview, 5, bool])
    def test_must_be_a_list(self, refusals):
        with pytest.raises(InvalidArgument, match=r"Invalid refusals: .* Pass a list"):
            reason(get(), refusals=refusals)

    def test_error_is_logged_and_refuses_nothing(self, caplog):
        assert reason(get(), refusals=[lambda context: 1 / 0]) is None
        assert [record.levelno for record in caplog.records] == [logging.ERROR]


class TestCounter:
    """A counter of the settings has refusals of its own."""

    @pytest.fixture
    def declare(self, settings):
        def declare(*refusals: object) -> None:
            counters = {"views": {}, "downloads": {"refusals": [*refusals]}}
            settings.HITCOUNT = {**settings.HITCOUNT, "COUNTERS": counters}

        return declare

    def reasons(self, request):
        """Why a hit of each counter does not count."""
        contexts = (HitContext(request, Article(pk=1), name) for name in ("views", "downloads"))
        return [*map(find_refusal, contexts)]

    def test_they_replace_those_of_the_settings(self, declare):
        declare("django_hitcount.refusals.method", f"{OWN}preview")
        app = RequestFactory(headers={"User-Agent": "okhttp/4.12.0"})

        assert self.reasons(app.get("/?preview")) == ["bot", "preview"]
        assert self.reasons(app.get("/")) == ["bot", None]
        assert self.reasons(app.head("/")) == ["method", "method"]

    def test_there_may_be_none(self, declare):
        declare()

        assert self.reasons(RequestFactory().post("/")) == ["method", None]

    def test_a_call_replaces_them(self, declare):
        declare(f"{OWN}preview")
        context = HitContext(get("/?preview"), Article(pk=1), "downloads")

        assert find_refusal(context, check_refusals([bot])) is None

    def test_they_may_have_options(self, declare):
        declare({"NAME": f"{OWN}parameter", "OPTIONS": {"name": "a"}})

        assert self.reasons(get("/?a")) == [None, "parameter"]

    def test_they_are_made_once(self, declare):
        declare(f"{OWN}paths")

        assert get_refusals("downloads") is get_refusals("downloads")
        assert get_refusals("views") is get_refusals()

    def test_reports_know_their_reasons(self, declare):
        declare({"NAME": f"{OWN}paths"}, f"{OWN}preview")
        names = reasons_by_name()

        assert names["preview"] == "An editor looks at a draft."
        assert {"path", "method", "prefetch", "bot", "caller"} <= names.keys()

    def test_error_names_the_counter(self, declare):
        declare("django_hitcount.refusals.bots")
        place = re.escape("HITCOUNT['COUNTERS']['downloads']['refusals'] contains")
        with pytest.raises(ImproperlyConfigured, match=f"{place} .*cannot be imported"):
            get_refusals("downloads")
