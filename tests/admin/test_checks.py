from __future__ import annotations

import pytest
from django.contrib import admin

from django_hitcount.admin import HitCountAdmin
from tests.admin.sites import staff
from tests.app.keys import Priced
from tests.app.models import Article


class LikesAdmin(HitCountAdmin, admin.ModelAdmin):
    hit_counter = "likes"


def found(model_admin) -> list[tuple[str, str]]:
    return [(message.id, message.msg) for message in model_admin.check()]


def test_a_counter_that_is_not_declared(settings):
    ((code, text),) = found(LikesAdmin(Article, staff))

    assert code == "django_hitcount.E009"
    assert "Unknown counter 'likes'" in text
    settings.HITCOUNT = {"COUNTERS": {"likes": {}}}
    assert found(LikesAdmin(Article, staff)) == []


def test_a_model_that_cannot_be_counted():
    model_admin = type("PricedAdmin", (HitCountAdmin, admin.ModelAdmin), {})(Priced, staff)

    ((code, text),) = found(model_admin)
    assert code == "django_hitcount.E009"
    assert "Priced" in text


def test_wrong_settings_are_reported_once(settings):
    settings.HITCOUNT = {"COUNTERS": 5}

    assert found(LikesAdmin(Article, staff)) == []


@pytest.mark.django_db(databases="__all__")
def test_all_model_admins_of_the_tests_are_valid():
    assert [
        message for model_admin in staff._registry.values() for message in model_admin.check()
    ] == []
