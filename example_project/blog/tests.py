"""What the pages count: ``manage.py test blog``. With the helpers for any site."""

from __future__ import annotations

from django.test import TestCase

from blog.models import Article, Page
from django_hitcount.testing import BrowserClient, assert_hits, override_hitcount


class CountingTests(TestCase):
    client_class = BrowserClient

    @classmethod
    def setUpTestData(cls) -> None:
        cls.article = Article.objects.create(path="tea", title="Tea", body="Tea is a drink.")

    def test_article_counts_views_and_visitors(self) -> None:
        for _ in range(2):
            self.client.get("/tea")
        self.client.get("/tea", REMOTE_ADDR="203.0.113.7")

        assert_hits(self.article, 3)
        assert self.article.get_visitors() == 2

    def test_bots_do_not_count(self) -> None:
        self.client.get("/tea", headers={"user-agent": "Googlebot/2.1"})

        assert_hits(self.article, 0)

    @override_hitcount(REDIS=None, NOT_BOT_USER_AGENTS=["OurApp/"])
    def test_our_app_counts(self) -> None:
        self.client.get("/tea", headers={"user-agent": "OurApp/2.1"})

        assert_hits(self.article, 1)

    def test_list_counts_impressions(self) -> None:
        for _ in range(2):
            self.client.get("/")

        assert_hits(self.article, 2, counter="impressions")
        assert_hits(self.article, 0)

    def test_download_counts_apart_from_views(self) -> None:
        self.client.get(f"/-/articles/{self.article.pk}/download")

        assert_hits(self.article, 1, counter="downloads")
        assert_hits(self.article, 0)

    def test_applause_counts_without_a_view(self) -> None:
        self.client.post(f"/-/articles/{self.article.pk}/applaud")

        assert_hits(self.article, 1, counter="applause")

    def test_page_with_the_view_mixin_counts(self) -> None:
        self.client.get("/-/pages/about")

        assert_hits(Page.objects.get(pk="about"), 1)
