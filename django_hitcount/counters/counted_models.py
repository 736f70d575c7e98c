"""The object that hits are counted for: its model, and its primary key as text."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db.models import Model

from django_hitcount import conf
from django_hitcount.counters.primary_keys import convert_key
from django_hitcount.exceptions import InvalidKey, UnsavedObject

connected: set[type[Model]] = set()
"""The results of counted_model() for the models that deletion.connect() was called for."""


@cache
def counted_model(model: type[Model]) -> type[Model]:
    """
    Return the model that objects of ``model`` count as: the topmost parent with the same key.

    A child of multi-table inheritance is the same object as its parent if its primary key is
    the link to the parent. The same holds for the parent's parent. A child with its own primary
    key is another object. A proxy counts as its concrete model.
    """
    concrete = _concrete(model)
    while parent := _parent_with_same_key(concrete):
        concrete = parent
    return concrete


def _concrete(model: type[Model]) -> type[Model]:
    concrete: type[Model] = model._meta.concrete_model or model
    return concrete


def _parent_with_same_key(model: type[Model]) -> type[Model] | None:
    pk: Any = model._meta.pk
    for parent, link in model._meta.parents.items():
        if link is not None and link == pk and pk.target_field.primary_key:
            return _concrete(parent)
    return None


def object_id_of(obj: Model) -> str:
    """Return the primary key of a saved object as text; raises InvalidKey if it does not fit."""
    if not isinstance(obj, Model):
        raise UnsavedObject(f"Cannot count hits of {obj!r}. Pass a saved model instance.")
    if (key := obj.pk) is None or obj._state.adding:
        raise UnsavedObject(f"Cannot count hits of {obj!r}. Save the object first.")
    text = convert_key(obj._meta.model, key)
    is_plain = text.isascii() and text.isprintable() and len(text) <= conf.OBJECT_ID_MAX_LENGTH
    return text if is_plain else _check_object_id(text)


def is_unsaved(obj: object) -> bool:
    """Return whether ``obj`` is a model instance without a row, as in a preview."""
    return isinstance(obj, Model) and (obj.pk is None or obj._state.adding)


def deleted_object_id(obj: Model) -> str:
    """Return the primary key as text. Unlike object_id_of(), accepts an object without a row."""
    return _check_object_id(convert_key(obj._meta.model, obj.pk))


def _check_object_id(text: str) -> str:
    if len(text) > conf.OBJECT_ID_MAX_LENGTH:
        raise InvalidKey(
            f"Invalid primary key: {text[:40]!r}... has {len(text)} characters. "
            f"Use keys of up to {conf.OBJECT_ID_MAX_LENGTH} characters."
        )
    if "\0" in text or not _encodes(text):
        raise InvalidKey(
            f"Invalid primary key: {text!r} holds a character that cannot be stored "
            "(NUL or half a surrogate pair). Remove it from the key."
        )
    return text


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
