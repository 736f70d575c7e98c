"""A Wagtail site, with the servers and databases of the other tests."""

from __future__ import annotations

from tests import settings
from tests.settings import CACHES, DATABASE, SECRET_KEY, TIME_ZONE, USE_TZ

__all__ = ["CACHES", "SECRET_KEY", "TIME_ZONE", "USE_TZ"]

DATABASES = {"default": settings.DATABASES["default"]}

HITCOUNT = {
    "REFUSALS": [
        "django_hitcount.refusals.method",
        "django_hitcount.refusals.prefetch",
        "django_hitcount.refusals.bot",
        "django_hitcount.refusals.previews",
    ]
}
ALLOWED_HOSTS = ["localhost", "testserver"]
AUTH_USER_MODEL = "cooks.Cook"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
LOGIN_URL = "wagtailadmin_login"
MEDIA_URL = "/media/"
ROOT_URLCONF = "tests.wagtail.urls"
STATIC_URL = "/static/"
WAGTAILADMIN_BASE_URL = "http://localhost"
WAGTAIL_SITE_NAME = "Bakery"
WAGTAIL_ENABLE_UPDATE_CHECK = False
INSTALLED_APPS = [
    "tests.wagtail.bakery",
    "tests.wagtail.cooks",
    "django_hitcount",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "django_filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
]
if DATABASE == "postgresql":
    INSTALLED_APPS.append("django.contrib.postgres")  # Wagtail's search asks for it there.
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
TEMPLATES = [
    {
        **settings.TEMPLATES[0],
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
