"""Which refusals are tried, in which order, and what happens to their errors."""

from __future__ import annotations

import logging

import pytest
from django.test import RequestFactory

from django_hitcount.exceptions import InvalidArgument
from django_hitcount.refusals.registry import HitContext, check_refuse, find_refusal, refusal
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


class TestCaller:
    def test_is_called_with_the_context_of_the_hit(self):
        asked = []
        request, obj = get(), Article(pk=7)
        find_refusal(HitContext(request, obj, "downloads"), check_refuse(asked.append))

        assert asked == [HitContext(request, obj, "downloads")]

    def test_is_called_last(self):
        asked = []

        assert reason(get(Purpose="prefetch"), refuse=asked.append) == "prefetch"
        assert asked == []

    @pytest.mark.parametrize(("answer", "expected"), [(True, "caller"), (False, None)])
    def test_says_so(self, answer, expected):
        assert reason(get(), refuse=lambda context: answer) == expected

    def test_may_be_a_refusal(self):
        assert reason(get("/?preview"), refuse=preview) == "preview"
        assert reason(get(), refuse=preview) is None

    @pytest.mark.parametrize("refuse", ["django_hitcount.refusals.staff", 5, "", 0, []])
    def test_must_be_a_function_or_a_refusal(self, refuse):
        with pytest.raises(InvalidArgument, match=r"Invalid refuse: .*Pass a function"):
            reason(get(), refuse=refuse)

    def test_error_is_logged_and_refuses_nothing(self, caplog):
        assert reason(get(), refuse=lambda context: 1 / 0) is None
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
