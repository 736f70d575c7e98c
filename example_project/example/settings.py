"""Settings of the example site.

By default they need neither Redis nor Celery. With EXAMPLE_REDIS_URL, hits wait in Redis until a
Celery worker writes them to the database. `manage.py demo` sets it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("EXAMPLE_DATA_DIR", BASE_DIR))
REDIS_URL = os.environ.get("EXAMPLE_REDIS_URL", "")
BROKER_URL = os.environ.get("EXAMPLE_BROKER_URL", REDIS_URL)

DEBUG = os.environ.get("EXAMPLE_DEBUG", "1") == "1"
SECRET_KEY = os.environ.get("EXAMPLE_SECRET_KEY", "for trying the example only")
REPLAY = os.environ.get("EXAMPLE_REPLAY", "0") == "1"
MADE_UP_TRAFFIC = os.environ.get("EXAMPLE_MADE_UP_TRAFFIC", "0") == "1"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_hitcount",
    "django_hitcount.pages",
    "blog",
    "demo",
]

MIDDLEWARE = [
    "django_hitcount.pages.middleware.PageHitsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
if not DEBUG:  # Django's debug pages have inline styles.
    MIDDLEWARE.append("example.content_security.send_policy")
if REPLAY:
    MIDDLEWARE.append("demo.replayed_days.RecordOnDaysOfLog")

ROOT_URLCONF = "example.urls"
WSGI_APPLICATION = "example.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "demo.labels.made_up_traffic",
            ],
        },
    },
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA_DIR / "db.sqlite3",
        "OPTIONS": {
            # The web server and the worker write to the same file: wait instead of failing.
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    },
}

CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

HITCOUNT: dict[str, Any] = {
    # "views" exists by default. It is listed to count its visitors, too.
    "COUNTERS": {
        "views": {"visitors": True},
        "page_views": {"visitors": True},
        "downloads": {},
        "applause": {},
        "impressions": {},
    },
    # In a replay, all pages would count today, and not on the days of the log.
    "PAGES": {"counter": "page_views", "exclude": ["/"] if REPLAY else ["/admin/"]},
    "TRUSTED_PROXIES": int(os.environ.get("EXAMPLE_PROXIES", "0")),
}

if REDIS_URL:
    CACHES["hitcount"] = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": REDIS_URL}
    HITCOUNT["REDIS"] = "hitcount"
    if REPLAY or MADE_UP_TRAFFIC:
        # The numbers of many days are to be exact on a busy machine, too. If a page went on without
        # Redis, on days before yesterday its visitor might count twice.
        HITCOUNT["REDIS_TIMEOUT_SECONDS"] = 10
    CELERY_BROKER_URL = BROKER_URL
    CELERY_TASK_IGNORE_RESULT = True

LANGUAGE_CODE = "en"
# Those of django_hitcount. The admin has that of the browser; the articles are in English.
LANGUAGES = [
    ("en", "English"),
    ("ar", "Arabic"),
    ("de", "German"),
    ("es", "Spanish"),
    ("fr", "French"),
]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "/static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
