"""
The objects that hits can be counted for: their models, and their primary keys as text.

The text in ``object_id`` must be the same when an object is created, when it is read back, and when
the database converts the key to text for ``with_hits()``. This is true for integers, texts and
UUIDs. It is not true for other types: a Decimal is ``1`` when created and ``1.00`` when read, the
text of a datetime depends on the time zone, and each database writes booleans differently.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

from django.db import connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.utils.functional import cached_property

from django_hitcount import conf
from django_hitcount.counters.keys import InvalidKey, is_storable
from django_hitcount.exceptions import UnsavedObject

Field: TypeAlias = "models.Field[Any, Any]"

named_models: set[type[Model]] = set()
"""The models whose objects can be counted before they have a row: the primary key is all of it."""


class KeyType(Enum):
    """The type of a primary key's column, by the type of its values in Python."""

    INTEGER = int
    TEXT = str
    PADDED_TEXT = "padded with blanks"
    UUID = uuid.UUID

    def parse(self, value: Any) -> int | str | uuid.UUID:
        """Return a value of the column, or its text, as Python has it. May raise ValueError."""
        if self is KeyType.INTEGER:
            return int(value)
        if self is KeyType.UUID:
            return value if isinstance(value, uuid.UUID) else uuid.UUID(str(value))
        return str(value).rstrip(" ") if self is KeyType.PADDED_TEXT else str(value)


FIELD_TYPES = (
    (models.IntegerField, KeyType.INTEGER),
    ((models.CharField, models.TextField), KeyType.TEXT),
    ((models.FileField, models.FilePathField), KeyType.TEXT),
    (models.UUIDField, KeyType.UUID),
)
"""By the class of the field, and of those that derive from it, such as SlugField."""

COLUMN_TYPES = (
    (r"uuid", KeyType.UUID),
    (r"(big|medium|small|tiny)?int(eger|2|4|8)?(\(\d+\))?( .*)?", KeyType.INTEGER),
    (r"(big|small)?serial", KeyType.INTEGER),
    (r"(n?varchar|character varying)(\(\d+\))?( .*)?", KeyType.TEXT),
    (r"((tiny|medium|long)?text|citext)( .*)?", KeyType.TEXT),
    (r"(n?char|bpchar|character)(\(\d+\))?( .*)?", KeyType.PADDED_TEXT),
)
"""By the type of the column, for custom fields."""

UUID_AS_DIGITS = re.compile(r"(var)?char\(32\)")
UUID_AS_TEXT = re.compile(r"(var)?char\(3[26]\)")
"""Text columns that hold a UUID: 32 digits, or 32 digits and four dashes."""

HINT = "Use an integer, text or UUID primary key, or count hits of a related object that has one."

registered: set[type[Model]] = set()
"""The results of counted_model() for the models that deletion.register() was called for."""


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
    plain_type, convert = _find_conversion(obj._meta.model)
    text = str(key) if type(key) is plain_type else convert(key)
    is_plain = text.isascii() and text.isprintable() and len(text) <= conf.OBJECT_ID_MAX_LENGTH
    return text if is_plain else check_object_id(text)


def is_unsaved(obj: object) -> bool:
    """Return whether ``obj`` is a model instance without a row, as in a preview."""
    return isinstance(obj, Model) and (obj.pk is None or obj._state.adding)


def deleted_object_id(obj: Model) -> str:
    """Return the primary key as text. Unlike object_id_of(), accepts an object without a row."""
    return check_object_id(convert_key(obj._meta.model, obj.pk))


def check_object_id(text: str) -> str:
    """Return a primary key as text; raise InvalidKey if it does not fit its column."""
    if len(text) > conf.OBJECT_ID_MAX_LENGTH:
        raise InvalidKey(
            f"Invalid primary key: {text[:40]!r}... has {len(text)} characters. "
            f"Use keys of up to {conf.OBJECT_ID_MAX_LENGTH} characters."
        )
    if not is_storable(text):
        raise InvalidKey(
            f"Invalid primary key: {text!r} holds a character that cannot be stored "
            "(NUL or half a surrogate pair). Remove it from the key."
        )
    return text


def is_part_of_class(model: type[Model], name: str) -> bool:
    """
    Return whether an attribute ``name`` would hide a field, a method, a property or a manager.

    It may hide a plain value, which is only a default, and a cached property.
    """
    found = next((vars(cls)[name] for cls in model.__mro__ if name in vars(cls)), None)
    if isinstance(found, cached_property | functools.cached_property):
        return False
    return callable(found) or hasattr(found, "__get__")


@cache
def key_field(model: type[Model]) -> Field:
    """Return the primary key of ``model``, or the field that it refers to if it is a relation."""
    field: Any = model._meta.pk
    while field.remote_field:
        field = field.target_field
    found: Field = field
    return found


@cache
def key_type(model: type[Model]) -> KeyType:
    """Return the type of the primary key of ``model``. Raises InvalidKey for an unsupported one."""
    label = model._meta.label
    if isinstance(model._meta.pk, models.CompositePrimaryKey):
        raise InvalidKey(
            f"Cannot count hits of {label}: a composite primary key has no single text form. {HINT}"
        )
    field = key_field(model)
    found = _type_of(field, connections[router.db_for_read(model)])
    if found is None:
        raise InvalidKey(
            f"Cannot count hits of {label}: the text of a primary key of type "
            f"{type(field).__name__} may differ between Python and the database. {HINT}"
        )
    return found


def _type_of(field: Field, connection: BaseDatabaseWrapper) -> KeyType | None:
    internal_type = field.get_internal_type()
    of_django = getattr(models, internal_type, None)
    if of_django and type(field).db_type is models.Field.db_type:
        return next((kind for classes, kind in FIELD_TYPES if issubclass(of_django, classes)), None)
    column = _column(field, connection)
    if internal_type == "UUIDField" and UUID_AS_TEXT.fullmatch(column):
        return KeyType.UUID
    found = (kind for pattern, kind in COLUMN_TYPES if re.fullmatch(pattern, column))
    return next(found, None)


def _column(field: Field, connection: BaseDatabaseWrapper) -> str:
    return (field.db_type(connection) or "").lower()


def is_uuid_as_digits(field: Field, connection: BaseDatabaseWrapper) -> bool:
    """Return whether the column of a UUID holds 32 digits without dashes."""
    return bool(UUID_AS_DIGITS.fullmatch(_column(field, connection)))


def convert_key(model: type[Model], key: Any) -> str:
    """
    Convert a primary key of ``model`` to text, as it is in ``object_id`` and in Redis.

    Raises InvalidKey if hits cannot be counted for a key of this type.
    """
    _, convert = _find_conversion(model)
    return convert(key)


@cache
def _find_conversion(model: type[Model]) -> tuple[type | None, Callable[[Any], str]]:
    """
    Return the type of the keys whose text is that of Python, and what converts any key.

    The type is None for a custom field: the column's value may be another one.
    """
    kind, field = key_type(model), key_field(model)
    plain_type: type = kind.value
    if _is_of_django(field):
        return plain_type, lambda key: str(key if type(key) is plain_type else kind.parse(key))
    using = router.db_for_read(model)
    return None, lambda key: str(
        kind.parse(field.get_db_prep_value(key, connections[using], prepared=False))
    )


def find_by_texts(
    model: type[Model], texts: Iterable[str], *, using: str
) -> models.QuerySet[Any, Any]:
    """
    Return the objects of ``model`` whose primary keys have one of ``texts``.

    Does not use the model's managers, since they may hide objects.
    """
    return filter_by_texts(models.QuerySet(model, using=using), texts)


def filter_by_texts(
    queryset: models.QuerySet[Any, Any], texts: Iterable[str]
) -> models.QuerySet[Any, Any]:
    """
    Return the objects of ``queryset`` whose primary keys have one of ``texts``.

    Compares a custom field by the value in its column, since its lookups may convert a key, or
    reject it as too large.
    """
    model: Any = queryset.model
    kind = key_type(model)
    keys = []
    for text in texts:
        with suppress(ValueError):  # No object has it as its key.
            keys.append(kind.parse(text))
    if _is_of_django(key_field(model)):
        return queryset.filter(pk__in=keys)
    column: Any = models.F("pk")
    if kind is not KeyType.UUID:
        of_column = models.BigIntegerField() if kind is KeyType.INTEGER else models.CharField()
        column = models.ExpressionWrapper(column, of_column)
    found: models.QuerySet[Any, Any] = queryset.alias(hitcount_key=column)
    return found.filter(hitcount_key__in=keys)


def _is_of_django(field: Field) -> bool:
    return type(field).__module__.startswith("django.db.models.")
