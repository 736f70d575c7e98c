"""Admin sites with a ModelAdmin of each kind. Their addresses are in ``urlpatterns``."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.urls import path

from django_hitcount.admin import CorrectionAdmin, HitCountAdmin, HitReportAdmin
from django_hitcount.models import Correction, HitSlot
from tests.app.models import (
    Article,
    Dessert,
    Essay,
    Featured,
    Novel,
    Page,
    Photo,
    Plain,
    Reader,
    Recipe,
    Review,
    Small,
    Tag,
)
from tests.urls import urlpatterns as pages


class StaffSite(admin.AdminSite):
    """A site that leaves its system checks to test_checks.py: other tests change the counters."""

    def check(self, app_configs):
        return []


staff = StaffSite(name="staff")
"""Not the default site, so a link that forgets the site leads elsewhere."""


@admin.register(Article, site=staff)
class ArticleAdmin(HitCountAdmin, admin.ModelAdmin):
    list_display = ("title", "author")
    search_fields = ("title",)
    list_filter = ("author",)


class Downloads(HitCountAdmin, admin.ModelAdmin):
    hit_counter = "downloads"


def author_of(review: Review) -> str:
    return review.author


class Exported:
    """A mixin of another library: it has its own template, columns and query."""

    change_list_template = None
    change_form_template = "own_change_form.html"

    def get_queryset(self, request):
        return super().get_queryset(request).with_hits(name="own_total").order_by("-own_total")

    def get_list_display(self, request):
        return [*super().get_list_display(request), author_of]


@admin.register(Review, site=staff)
class ReviewAdmin(HitCountAdmin, Exported, admin.ModelAdmin):
    list_display = ["title", "stars"]
    list_editable = ["stars"]
    list_display_links = ["hits_column"]
    ordering = ["stars"]


@admin.register(Featured, site=staff)
class FeaturedAdmin(Exported, HitCountAdmin, admin.ModelAdmin):
    change_form_template = "bare_change_form.html"
    list_display = ["title", "hits"]


@admin.register(Reader, site=staff)
class ReaderAdmin(HitCountAdmin, admin.ModelAdmin):
    list_display = ["hits_column", "username"]
    readonly_fields = ["hits_column"]
    fields = ["username", "hits_column"]


@admin.register(Essay, site=staff)
class EssayAdmin(HitCountAdmin, admin.ModelAdmin):
    """May be viewed alone."""

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


staff.register([Page, Photo, Small, Plain], type("KeyAdmin", (HitCountAdmin, admin.ModelAdmin), {}))
staff.register(Novel, Downloads)
staff.register([Recipe, Dessert], type("TotalAdmin", (HitCountAdmin, admin.ModelAdmin), {}))
staff.register(Tag, admin.ModelAdmin)
staff.register(HitSlot, HitReportAdmin)
staff.register(Correction, CorrectionAdmin)
staff.register([User, Group])

urlpatterns = [
    *pages,
    path("staff/", staff.urls),
    path("admin/", admin.site.urls),
]
