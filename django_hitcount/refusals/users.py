"""Refusals by the user who is logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import ForeignKey, Model
from django.utils.translation import gettext_lazy as _

from django_hitcount import conf
from django_hitcount.refusals.base import (
    HitContext,
    Refusal,
    convert_texts,
    logged_in_user,
    refusal,
)

__all__ = ["groups", "owner", "permissions", "staff"]


@refusal("staff", _("The user is a member of the staff."))
def staff(context: HitContext) -> bool:
    """Refuse members of the staff. Costs what ``request.user`` costs if it was not read before."""
    return bool(getattr(logged_in_user(context), "is_staff", False))


def groups(names: Iterable[str]) -> Refusal:
    """
    Refuse users who are in one of the groups with these names.

    Costs a query for each hit of a user who is logged in. Raises ValueError for wrong names.
    """
    wanted = frozenset(convert_texts(names, "names", "group names"))

    @refusal("group", _("The user is in a group that is not counted."))
    def is_in_group(context: HitContext) -> bool:
        user = logged_in_user(context)
        return user is not None and user.groups.filter(name__in=wanted).exists()

    return is_in_group


def permissions(names: Iterable[str]) -> Refusal:
    """
    Refuse users who have one of these permissions, as ``"blog.change_article"``.

    Superusers have all permissions. Costs what ``user.has_perm()`` costs. With Django's own
    backend, these are two queries for each hit of a user who is logged in, unless the page has
    checked a permission already. Raises ValueError for wrong names.
    """
    wanted = convert_texts(names, "names", "permissions")
    for name in wanted:
        if not all(name.partition(".")):
            raise ValueError(f"a permission must be 'app_label.codename', not {name!r}")

    @refusal("permission", _("The user has a permission that is not counted."))
    def has_permission(context: HitContext) -> bool:
        user = logged_in_user(context)
        return user is not None and any(map(user.has_perm, wanted))

    return has_permission


def owner(of: str | Callable[[Model], object]) -> Refusal:
    """
    Refuse the owner of an object.

    Args:
        of: the name of the field with the owner, with ``__`` to follow relations; or a callable,
            or the dotted path of one, that takes an object and returns a user or the primary
            key of one.

    Costs what reading the field costs. Raises ValueError or ImportError for a wrong ``of``.
    """
    read_owner = _owner_reader(of)

    @refusal("owner", _("The user owns the object."))
    def is_owner(context: HitContext) -> bool:
        user = logged_in_user(context)
        if user is None:
            return False
        found = read_owner(context.obj)
        return found is not None and found == (user if isinstance(found, Model) else user.pk)

    return is_owner


def _owner_reader(of: object) -> Callable[[Model], object]:
    if isinstance(of, str) and "." in of:
        of = conf.import_dotted_path(of)
    if callable(of):
        return of
    *relations, last = of.split("__") if isinstance(of, str) else [""]
    if not all(name.isidentifier() for name in (*relations, last)):
        raise ValueError(f"of must be the name of a field or a callable, not {of!r}")

    def read(obj: Model) -> object:
        found: Any = obj
        for name in relations:
            found = getattr(found, name, None)
        return getattr(found, _column(found, last), None)

    return read


def _column(obj: object, name: str) -> str:
    """Return ``name``, or the column of a foreign key to users: reading that costs no query."""
    fields = obj._meta.fields if isinstance(obj, Model) else ()
    field = next((field for field in fields if field.name == name), None)
    if not isinstance(field, ForeignKey) or not field.target_field.primary_key:
        return name
    return field.attname if field.related_model is get_user_model() else name
