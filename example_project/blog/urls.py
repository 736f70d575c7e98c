from __future__ import annotations

from django.urls import path, re_path
from django.views.decorators.cache import cache_page

from blog import views

app_name = "blog"

# An article may have any path, so what the site needs for itself is below "/-/".
urlpatterns = [
    path("", views.ArticleListView.as_view(), name="list"),
    path("-/thanks", views.thank, name="thank"),
    path("-/pages/<slug:pk>", views.PageView.as_view(), name="page"),
    path(
        "-/articles/<int:pk>/cached",
        cache_page(300)(views.CachedArticleView.as_view()),
        name="cached",
    ),
    path("-/articles/<int:pk>/download", views.download, name="download"),
    path("-/articles/<int:pk>/applaud", views.applaud, name="applaud"),
    re_path(r"^(?P<path>(?!-/)[\s\S]+)\Z", views.ArticleView.as_view(), name="article"),
]
