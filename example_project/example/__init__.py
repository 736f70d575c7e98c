from __future__ import annotations

import os

if os.environ.get("EXAMPLE_REDIS_URL"):
    # The web server, too, must know which broker its tasks go to.
    from example.celery import app as celery_app

    __all__ = ["celery_app"]
