"""The Celery application: `celery -A example worker --beat` flushes and compacts on schedule."""

from __future__ import annotations

import os

from celery import Celery

from django_hitcount.tasks import beat_schedule

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example.settings")

app = Celery("example")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_schedule = beat_schedule()
