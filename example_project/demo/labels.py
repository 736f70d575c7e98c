from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest


def made_up_traffic(request: HttpRequest) -> dict[str, bool]:
    """A context processor: whether the site must say that its traffic is made up."""
    return {"made_up_traffic": settings.MADE_UP_TRAFFIC}
