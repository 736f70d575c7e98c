"""Open a scenario: servers in a first state, and actors that have not begun."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from unittest import mock

from django.apps import apps
from django.conf import settings
from django.contrib.contenttypes.models import ContentType, ContentTypeManager
from django.test import override_settings

from tests.app.models import Article
from tests.laws.schedules.explorer import Explorer
from tests.laws.schedules.processes import stage
from tests.laws.schedules.scenarios import KEYS, Scenario
from tests.laws.schedules.tables import Tables
from tests.laws.schedules.valkey import Valkey
from tests.laws.schedules.world import World
from tests.servers import HOST, Server

SELDOM = (200_000, 20, 100)
"""When to collect garbage. All that is remembered is looked through each time."""

DATABASE = 1
"""As in the LOCATION of the tests' settings."""


@contextmanager
def opened(scenario: Scenario, server: Server) -> Iterator[Explorer]:
    """Let the actors of a scenario run within the block. Flushes all of ``server``."""
    valkey = Valkey(HOST, server.port, database=DATABASE)
    thresholds = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        with (
            override_settings(**_settings(scenario)),
            stage(),
            closing(Tables()) as tables,
            _content_types_known(tables),
        ):
            yield Explorer(World(valkey, tables, KEYS), scenario)
    finally:
        valkey.close()
        gc.set_threshold(*thresholds)


def _settings(scenario: Scenario) -> dict[str, Any]:
    """Return settings with few partitions and slots, and with the timeouts that sites have."""
    own = {"REDIS": "hitcount", "PARTITIONS": 1, "SLOTS": 1, **scenario.options}
    alias = {**settings.CACHES["hitcount"], "OPTIONS": {}}
    return {
        "HITCOUNT": {**settings.HITCOUNT, **own},
        "CACHES": {**settings.CACHES, "hitcount": alias},
    }


@contextmanager
def _content_types_known(tables: Tables) -> Iterator[None]:
    """Let all processes know all content types, as those do that have run for a while."""
    models = sorted(apps.get_models(), key=lambda model: (model is not Article, model._meta.label))
    manager = ContentType.objects
    manager.clear_cache()
    for pk, model in enumerate(models, 1):
        name = model._meta.model_name
        content_type = ContentType(pk=pk, app_label=model._meta.app_label, model=name)
        tables.add_content_type(content_type)
        manager._add_to_cache("default", content_type)
    with mock.patch.object(ContentTypeManager, "clear_cache"):
        yield
    manager.clear_cache()
