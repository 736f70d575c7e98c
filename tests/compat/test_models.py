"""HitCount in place of the model of django-hitcount."""

from __future__ import annotations

import pytest
from django.contrib.contenttypes.fields import GenericRelation
from django.db import models

from django_hitcount.compat.models import HitCount


def test_an_old_relation_says_what_to_do():
    with pytest.raises(AttributeError, match=r"Remove the GenericRelation to it: with_hits\(\)"):

        class Post(models.Model):
            hit_count_generic = GenericRelation(HitCount, object_id_field="object_pk")

            class Meta:
                app_label = "app"

            def __str__(self) -> str:
                return ""
