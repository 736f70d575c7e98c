"""
Count and show hits in an API of Django REST framework.

It needs the extra ``rest-framework``, and the rest of the package does not need it: only the system
check of orderings imports it, if the project has such views.
"""

from __future__ import annotations

from django_hitcount.rest_framework.fields import HitCountField
from django_hitcount.rest_framework.filters import HitCountOrderingFilter
from django_hitcount.rest_framework.mixins import HitCountRetrieveMixin
from django_hitcount.rest_framework.throttling import IntervalThrottle

__all__ = [
    "HitCountField",
    "HitCountOrderingFilter",
    "HitCountRetrieveMixin",
    "IntervalThrottle",
]
