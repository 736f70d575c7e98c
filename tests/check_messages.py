"""What the system checks say of django_hitcount."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.checks import CheckMessage, run_checks


def hitcount_messages(*, deploy: bool = False) -> list[CheckMessage]:
    """The messages of django_hitcount, with the settings as they are."""
    found = run_checks(include_deployment_checks=deploy)
    return [m for m in found if is_meant(m)]


def is_meant(message: CheckMessage) -> bool:
    """All but W010: the app of pages is installed, and only its own tests use its middleware."""
    return "hitcount" in str(message.id) and message.id != "django_hitcount.W010"


def ids(messages: Iterable[CheckMessage]) -> list[str]:
    """The ids of the messages of django_hitcount, such as "E001"."""
    return [m.id.removeprefix("django_hitcount.") for m in messages if is_meant(m)]


def ids_with(settings, **changes: object) -> list[str]:
    """The ids of the messages after some changes of ``HITCOUNT``."""
    settings.HITCOUNT = {**settings.HITCOUNT, **changes}
    return ids(run_checks())


def ids_of_deployment() -> list[str]:
    """The ids of those messages that only ``check --deploy`` shows."""
    shown = ids(run_checks())
    return [name for name in ids(run_checks(include_deployment_checks=True)) if name not in shown]
