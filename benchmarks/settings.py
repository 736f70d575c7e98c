"""Settings of the benchmarks. Ports come from the environment, which worker processes inherit."""

from __future__ import annotations

import os

from tests.servers import HOST

DIRECTORY = os.environ["HITCOUNT_BENCHMARKS_DIRECTORY"]
REDIS_PORT = os.environ["HITCOUNT_BENCHMARKS_REDIS_PORT"]
MARIADB_PORT = os.environ.get("HITCOUNT_BENCHMARKS_MARIADB_PORT")
POSTGRESQL_PORT = os.environ.get("HITCOUNT_BENCHMARKS_POSTGRESQL_PORT")

SECRET_KEY = "benchmarks"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "benchmarks.app.urls"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "hitcount",
    "django_visit_count",
    "django_hitcount",
    "django_hitcount.pages",
    "benchmarks.app",
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
# The default becomes one of the others while that is measured.
DATABASES: dict[str, dict[str, object]] = {
    "default": {},
    "sqlite": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": f"{DIRECTORY}/db.sqlite3",
        "OPTIONS": {"timeout": 30},
    },
}
for alias, engine, name, user, port in (
    ("mariadb", "mysql", "benchmarks", "root", MARIADB_PORT),
    ("postgresql", "postgresql", "postgres", "hitcount", POSTGRESQL_PORT),
):
    if port:
        server = {"NAME": name, "USER": user, "HOST": HOST, "PORT": port}
        DATABASES[alias] = {"ENGINE": f"django.db.backends.{engine}", **server}


def _redis(number: int) -> dict[str, str]:
    return {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": f"redis://{HOST}:{REDIS_PORT}/{number}",
    }


CACHES = {"default": _redis(0), "hitcount": _redis(1)}
