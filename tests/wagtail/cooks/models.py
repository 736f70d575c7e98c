"""The users, in another app: Wagtail's migrations depend on it."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser

from django_hitcount.models import HitCountMixin


class Cook(HitCountMixin, AbstractUser):
    """A user whose profile views are counted."""
