"""The objects that are counted: a page by its path, and the whole site."""

from __future__ import annotations

from urllib.parse import quote

from django.apps import apps
from django.db import models, router
from django.db.models.signals import post_delete
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_hitcount.conf import PATH_MAX_LENGTH
from django_hitcount.db.savepoints import savepoint
from django_hitcount.db.tables.hits import ObjectIdField, unique
from django_hitcount.known_rows import KnownRows, clear_known_rows, insert_if_missing
from django_hitcount.models import HitCountMixin, NamedModel
from django_hitcount.outages import page_read_breaker

__all__ = ["Page", "WholeSite"]

NO_SITE = 0
"""The id of the site if django.contrib.sites is not installed, or does not know the host."""


class Page(HitCountMixin, models.Model):
    """
    A page of a site, by its path. It is made when it is first viewed.

    Has the fields ``site_id``, which is 0 without django.contrib.sites, and ``path``, with the
    parameters of the query that HITCOUNT["PAGES"] names. It is counted like any object::

        Page.objects.filter(path__startswith="/blog/").popular(10, days=7)
    """

    overview_level = 1

    site_id = models.IntegerField(_("site"), default=NO_SITE, editable=False)
    path = ObjectIdField(_("path"), max_length=PATH_MAX_LENGTH, editable=False)

    class Meta:
        verbose_name = _("page")
        verbose_name_plural = _("pages")
        default_permissions = ("view", "delete")
        constraints = [unique("page", "site_id", "path")]

    def __str__(self) -> str:
        """Return the path. Quote what cannot be seen: such a path may look like another one."""
        return "".join(each if each.isprintable() else quote(each) for each in str(self.path))

    def get_absolute_url(self) -> str:
        """Return the address of the page, for links."""
        path, mark, query = str(self.path).partition("?")
        return quote(path.replace("%3F", "?")) + mark + query


class WholeSite(NamedModel):
    """
    A site as a whole: all of its pages together, by the id of the Site, or 0 without sites::

        get_visitors(WholeSite())
        WholeSite(settings.SITE_ID).hits_by_day(days=30)

    It can be read before it was ever counted.
    """

    overview_level = 2

    site_id = models.IntegerField(_("site"), primary_key=True, default=NO_SITE, editable=False)

    class Meta:
        verbose_name = _("whole site")
        verbose_name_plural = _("whole sites")
        default_permissions = ("view",)

    def __str__(self) -> str:
        text = gettext("The whole site")
        if apps.is_installed("django.contrib.sites"):
            from django.contrib.sites.models import Site

            if site := Site.objects.filter(pk=self.site_id).first():
                return f"{text}: {site.domain}"
        return text


_found: KnownRows[int] = KnownRows()
"""The primary keys of the pages that this process has found, by database, site and path."""

_missing: KnownRows[bool] = KnownRows()
"""
The paths that this process has looked for in vain. Apart from the others, so that a flood of them
takes the place of no page.
"""


def find_page(site_id: int, path: str, *, may_be_new: bool = True) -> Page | None:
    """
    Return the page with a path; None without one. Costs nothing if this process has found it within
    five minutes, else a query.

    If it may not be new, also costs nothing without a page, if this process has looked for it
    within five minutes. One that another process has made since is not found so long.

    Raises the database's error, and BufferUnavailable while the breaker of page reads is open.
    """
    using = router.db_for_write(Page)
    place = using, site_id, path
    pk = _found.recall(place)
    if pk is None:
        if len(path) > PATH_MAX_LENGTH or (not may_be_new and _missing.recall(place)):
            return None
        rows = Page.objects.using(using).filter(site_id=site_id, path=path)
        with page_read_breaker().guard(), savepoint(using):
            pk = rows.values_list("pk", flat=True).first()
        if pk is None:
            if not may_be_new:
                _missing.remember(place, True, using=using)
            return None
        _found.remember(place, pk, using=using)
    page = Page(pk=pk, site_id=site_id, path=path)
    page._state.adding, page._state.db = False, using
    return page


def make_page(site_id: int, path: str) -> Page | None:
    """
    Make a page, and return it, or the one that another process has made meanwhile.

    Costs a transaction of one statement and a query. Raises what find_page() raises.
    """
    using = router.db_for_write(Page)
    insert_if_missing(Page, {"site_id": site_id, "path": path}, using=using)
    return find_page(site_id, path)


post_delete.connect(clear_known_rows, sender=Page, dispatch_uid="django_hitcount.pages")
