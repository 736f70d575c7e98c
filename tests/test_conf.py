from __future__ import annotations

from dataclasses import fields

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_hitcount import conf
from django_hitcount.buffers import get_buffer
from django_hitcount.buffers.database import DatabaseBuffer


def test_every_setting_has_a_field_and_a_converter():
    assert {field.name.upper() for field in fields(conf.Config)} == set(conf._CONVERTERS)


def test_defaults_without_the_setting(settings):
    del settings.HITCOUNT
    conf.get_config.cache_clear()

    assert conf.get_config() == conf.Config()
    assert isinstance(get_buffer(), DatabaseBuffer)


def test_config_follows_the_setting(settings):
    settings.HITCOUNT = {"SLOTS": 3, "COUNTERS": {"downloads": {}}}

    assert conf.get_config().slots == 3
    assert conf.get_config().counters == ("views", "downloads")
    assert conf.get_config() is conf.get_config()


@pytest.mark.parametrize(
    ("hitcount", "message"),
    [
        ({"BUFER": "x"}, "HITCOUNT has no setting 'BUFER'. Did you mean 'BUFFER'?"),
        ({"buffer": "x"}, "HITCOUNT has no setting 'buffer'. Did you mean 'BUFFER'?"),
        ({"XYZZY": 1}, "HITCOUNT has no setting 'XYZZY'. Use one of BUFFER, "),
        ({5: 1}, "HITCOUNT has no setting 5. Use one of "),
        ([], "HITCOUNT is []. Set it to a dict."),
        ({"BUFFER": None}, "HITCOUNT['BUFFER'] is None. Set it to a string."),
        ({"CACHE_ALIAS": ""}, "HITCOUNT['CACHE_ALIAS'] is ''. Set it to a string."),
        ({"SLOTS": 0}, "HITCOUNT['SLOTS'] is 0. Set it to a whole number from 1 to 32767."),
        ({"SLOTS": True}, "HITCOUNT['SLOTS'] is True. Set it to a whole number"),
        ({"PARTITIONS": "16"}, "HITCOUNT['PARTITIONS'] is '16'. Set it to a whole number from 1"),
        ({"TOTAL_TTL_SECONDS": 0.5}, "HITCOUNT['TOTAL_TTL_SECONDS'] is 0.5. Set it to a whole"),
        ({"FLUSH_THRESHOLD": 0}, "HITCOUNT['FLUSH_THRESHOLD'] is 0. Set it to a whole number"),
        (
            {"REDIS_TIMEOUT_SECONDS": 0},
            "HITCOUNT['REDIS_TIMEOUT_SECONDS'] is 0. Set it to a number of seconds",
        ),
        ({"REDIS_TIMEOUT_SECONDS": float("inf")}, "greater than 0, 60 at most."),
        ({"REDIS_TIMEOUT_SECONDS": float("nan")}, "greater than 0, 60 at most."),
        ({"REDIS_TIMEOUT_SECONDS": True}, "is True. Set it to a number of seconds"),
        ({"COUNTERS": ["a"]}, "HITCOUNT['COUNTERS'] is ['a']. Set it to a dict of counter names"),
        ({"COUNTERS": {"Likes": {}}}, "HITCOUNT['COUNTERS'] declares 'Likes'. Name a counter with"),
        ({"COUNTERS": {"x" * 51: {}}}, "50 characters at most."),
        ({"COUNTERS": {"a": {"x": 1}}}, "HITCOUNT['COUNTERS']['a'] is {'x': 1}. A counter has no"),
    ],
)
def test_wrong_setting_is_an_error_with_value_and_fix(settings, hitcount, message):
    settings.HITCOUNT = hitcount

    with pytest.raises(ImproperlyConfigured) as raised:
        conf.get_config()

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.Buffer", "HITCOUNT['BUFFER'] is 'nowhere.Buffer', which cannot be imported"),
        ("datetime.date", "which is no subclass of django_hitcount.buffers.Buffer"),
    ],
)
def test_wrong_buffer_is_an_error_with_value_and_fix(settings, path, message):
    settings.HITCOUNT = {"BUFFER": path}

    with pytest.raises(ImproperlyConfigured) as raised:
        get_buffer()

    assert message in str(raised.value)


def test_no_setting_is_read_at_import():
    """Otherwise override_settings would not work, nor settings that come late."""
    import subprocess
    import sys

    code = "import django_hitcount.conf, django_hitcount.tasks, django_hitcount.exceptions"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env={})
