"""
Settings of the test run.

HITCOUNT_TEST_DATABASE names the database: sqlite, mariadb or postgresql. Worker processes
that tests start find their servers by the environment, which is set here first.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

from tests.servers import HOST, reserve_port

DATABASE = os.environ.setdefault("HITCOUNT_TEST_DATABASE", "sqlite")
REDIS_PORT = os.environ.setdefault("HITCOUNT_TEST_REDIS_PORT", str(reserve_port()))
DATABASE_PORT = os.environ.setdefault("HITCOUNT_TEST_DATABASE_PORT", str(reserve_port()))
if "HITCOUNT_TEST_DIRECTORY" not in os.environ:
    os.environ["HITCOUNT_TEST_DIRECTORY"] = tempfile.mkdtemp(prefix="hitcount-")
    atexit.register(shutil.rmtree, os.environ["HITCOUNT_TEST_DIRECTORY"], ignore_errors=True)
DIRECTORY = os.environ["HITCOUNT_TEST_DIRECTORY"]
# The name of the test database, which the test run sets for its workers.
MADE_DATABASE = os.environ.get("HITCOUNT_TEST_DATABASE_NAME", "")

SECRET_KEY = "tests"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
ROOT_URLCONF = "tests.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_hitcount",
    "django_hitcount.compat",
    "django_hitcount.pages",
    "cookie_consent",
    "tests.app",
]
# What the admin asks for.
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
STATIC_URL = "/static/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

_SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": MADE_DATABASE or f"{DIRECTORY}/db.sqlite3",
    "TEST": {"NAME": f"{DIRECTORY}/test.sqlite3"},
    # Tests kill processes, not machines: no need to wait for the disk.
    "OPTIONS": {"timeout": 30, "init_command": "PRAGMA synchronous = OFF"},
}
_MARIADB: dict[str, Any] = {
    "ENGINE": "django.db.backends.mysql",
    "NAME": MADE_DATABASE or "hitcount",
    "USER": "root",
    "HOST": HOST,
    "PORT": DATABASE_PORT,
    "OPTIONS": {"connect_timeout": 30},
}
_POSTGRESQL: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": MADE_DATABASE or "postgres",
    "USER": "hitcount",
    "HOST": HOST,
    "PORT": DATABASE_PORT,
    "OPTIONS": {"connect_timeout": 30},
}
_ELSEWHERE_IN_A_FILE = {
    "NAME": f"{DIRECTORY}/elsewhere.sqlite3",
    "TEST": {"NAME": f"{DIRECTORY}/test_elsewhere.sqlite3"},
}
_DEFAULT = {"sqlite": _SQLITE, "mariadb": _MARIADB, "postgresql": _POSTGRESQL}[DATABASE]
DATABASES = {
    "default": _DEFAULT,
    # For tests of several databases.
    "elsewhere": {
        **_DEFAULT,
        **(_ELSEWHERE_IN_A_FILE if DATABASE == "sqlite" else {"NAME": "elsewhere"}),
    },
}
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "hitcount": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": f"redis://{HOST}:{REDIS_PORT}/1",
        # A machine that is busy with other tests may keep a process waiting for seconds. Tests of
        # timeouts set shorter ones.
        "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 20, "SOCKET_TIMEOUT": 20},
    },
}
HITCOUNT: dict[str, Any] = {
    "REDIS": os.environ.get("HITCOUNT_TEST_REDIS"),
    "COUNTERS": {"downloads": {}},
}
