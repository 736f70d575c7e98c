from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

admin.site.site_header = "The Tally (made-up traffic)" if settings.MADE_UP_TRAFFIC else "The Tally"

urlpatterns = [
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    # Pages without a link to an icon, such as those of the admin, ask for this one.
    path("favicon.ico", RedirectView.as_view(url=static("blog/icon.svg"))),
    # Cached pages send their hits here.
    path("seen/", include("django_hitcount.urls")),
    path("", include("blog.urls")),
]
