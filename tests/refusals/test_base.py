"""Of which functions a refusal can be made."""

from __future__ import annotations

from asyncio import Future, new_event_loop

import pytest
from django.test import RequestFactory

from django_hitcount.refusals.registry import (
    HitContext,
    Refusal,
    check_refusals,
    find_refusal,
    refusal,
)
from tests.app.models import Article
from tests.browsers import BROWSER

pytestmark = pytest.mark.usefixtures("nothing_fails")


def named(name: str) -> Refusal:
    return Refusal(name, "...", bool)


class TestMistakes:
    async def never_awaited(self):
        """A coroutine is true."""

    @pytest.mark.parametrize(
        "name",
        [
            *("repeat", "caller", "unavailable", "no_request", "unsaved"),
            *("", "Preview", "pre view", "a:b", "1st", "é", "x" * 51, None, 5),
        ],
    )
    @pytest.mark.parametrize("make", [lambda name: refusal(name, "...")(bool), named])
    def test_name_that_means_something_else_or_does_not_fit(self, name, make):
        with pytest.raises(ValueError, match=f"Invalid name of a refusal: {name!r}. Start it"):
            make(name)

    def test_coroutine_function_is_no_refusal(self):
        class Asynchronous:
            async def __call__(self, context: HitContext) -> bool:
                return False

        for refuses in (self.never_awaited, Asynchronous()):
            with pytest.raises(ValueError, match="is not a plain function"):
                refusal("mine", "A reason.")(refuses)

    @pytest.mark.parametrize("is_awaitable", [True, False])
    def test_answer_that_is_always_true_is_logged_as_an_error(self, caplog, is_awaitable):
        context = HitContext(RequestFactory(headers=BROWSER).get("/"), Article(), "views")
        answer = Future(loop=new_event_loop()) if is_awaitable else named("mine")
        if is_awaitable:
            answer.get_loop().close()

        assert find_refusal(context, check_refusals([lambda context: answer])) is None
        assert "is neither true nor false" in caplog.text

    def test_coroutine_function_does_not_decide_on_a_hit(self):
        with pytest.raises(ValueError, match="is not a plain function"):
            check_refusals([self.never_awaited])
