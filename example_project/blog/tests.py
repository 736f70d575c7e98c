"""What the pages count: ``manage.py test blog``. With the helpers for any site."""

from __future__ import annotations

from django.conf import settings
from django.test import TestCase
from django.utils.translation import gettext, override

from blog.models import Article, Page
from django_hitcount.models import Counter
from django_hitcount.pages.models import Page as CountedPage
from django_hitcount.pages.models import WholeSite
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

    def test_button_is_counted_by_its_name(self) -> None:
        self.client.post("/-/thanks")

        assert_hits(Counter("thanks"), 1)
        assert "Say thanks <span>1</span>" in self.client.get("/-/pages/about").content.decode()

    def test_all_pages_count_for_the_site(self) -> None:
        self.client.get("/tea")
        self.client.get("/admin/login/")
        page = self.client.get("/").content.decode()

        assert "visited 1 time today, by 1 visitor." in page
        assert_hits(WholeSite(), 2, counter="page_views")
        assert_hits(CountedPage.objects.get(path="/tea"), 1, counter="page_views")

    def test_admin_names_counters_in_each_language(self) -> None:
        own = ["Page views", "Applause", "Impressions"]
        for language, _ in settings.LANGUAGES[1:]:
            with self.subTest(language), override(language):
                assert not {*own} & {*map(gettext, own)}
