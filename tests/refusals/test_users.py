"""Which hits are refused by who made them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.db import models
from django.test import RequestFactory
from django.test.utils import isolate_apps
from django.utils.functional import SimpleLazyObject

from django_hitcount.recording import arecord_hit
from tests.app.models import Article
from tests.refusals.reasons import BUILT_IN, get, reason

pytestmark = pytest.mark.usefixtures("nothing_fails")


OWN = f"{__name__}."


with isolate_apps("tests.app"):

    class Draft(models.Model):
        """A model with all kinds of owners; it has no table."""

        author = models.ForeignKey(User, models.CASCADE, null=True, related_name="+")
        editor = models.ForeignKey(User, models.CASCADE, to_field="username", related_name="+")
        section = models.ForeignKey(Group, models.CASCADE, related_name="+")
        draft = models.ForeignKey("self", models.CASCADE, null=True, related_name="+")
        writer = property(lambda self: self.author)

        class Meta:
            app_label = "app"


def author_of(obj: models.Model) -> object:
    return obj.author


class TestStaff:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        refuse(f"{BUILT_IN}staff")

    @pytest.mark.parametrize("is_staff", [True, False])
    def test_member(self, db, is_staff):
        user = User.objects.create(username="ann", is_staff=is_staff, is_superuser=True)

        lazy = SimpleLazyObject(lambda: User.objects.get(pk=user.pk))
        assert reason(get(user=lazy)) == ("staff" if is_staff else None)

    @pytest.mark.parametrize("user", [None, SimpleNamespace(is_staff=True, is_authenticated=False)])
    def test_anonymous_user_is_not_refused(self, user):
        assert reason(get(user=user)) is None


@pytest.mark.parametrize("key", ["\0" * 32, "\U0001f36a" * 32])
def test_session_key_that_no_backend_creates_has_no_user(refuse, key):
    """Its user is not read, as databases answer such a key with an error."""
    refuse("django_hitcount.refusals.staff")
    request = get(user=SimpleLazyObject(lambda: 1 / 0))
    request.session = SessionStore(key)

    assert reason(request) is None


def test_site_without_users(refuse):
    options = [("groups", {"names": ["editors"]}), ("owner", {"of": "author"})]
    refuse(f"{BUILT_IN}staff", *((BUILT_IN + name, option) for name, option in options))

    assert reason(RequestFactory().get("/"), Article(pk=1, author="Ann")) is None


class TestGroups:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        refuse((f"{BUILT_IN}groups", {"names": ["editors", "authors"]}))

    @pytest.mark.parametrize(
        ("names", "expected"),
        [(["editors"], "group"), (["no", "authors"], "group"), (["no"], None), ([], None)],
    )
    def test_member_of_one_of_them(self, user, names, expected):
        user.groups.set(Group.objects.create(name=name) for name in names)

        assert reason(get(user=user)) == expected

    @pytest.mark.django_db(transaction=True)
    def test_costs_a_query_if_a_user_is_logged_in(self, user, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert reason(get()) is None
        with django_assert_num_queries(1):
            assert reason(get(user=user)) is None


class TestPermissions:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        names = ["app.change_article", "app.delete_article"]
        refuse((f"{BUILT_IN}permissions", {"names": names}))

    @pytest.mark.parametrize(
        ("codename", "expected"),
        [("change_article", "permission"), ("delete_article", "permission"), ("add_article", None)],
    )
    def test_user_who_has_one_of_them(self, user, codename, expected):
        user.user_permissions.add(Permission.objects.get(codename=codename))

        assert reason(get(user=user)) == expected

    def test_superuser_has_them_all(self, db):
        assert reason(get(user=User.objects.create(is_superuser=True))) == "permission"

    def test_inactive_user_has_none(self, db):
        assert reason(get(user=User.objects.create(is_superuser=True, is_active=False))) is None

    @pytest.mark.django_db(transaction=True)
    def test_costs_two_queries_if_a_user_is_logged_in(self, user, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert reason(get()) is None
        with django_assert_num_queries(2):
            assert reason(get(user=user)) is None
            assert reason(get(user=user)) is None


class TestOwner:
    @pytest.fixture
    def by(self, refuse):
        return lambda of: refuse((f"{BUILT_IN}owner", {"of": of}))

    @pytest.mark.parametrize("of", ["author", "author_id", "writer", "draft__author"])
    def test_by_a_field_without_a_query(self, by, user, other, of, django_assert_num_queries):
        by(of)
        draft = Draft(author=user, draft=Draft(author=user))

        with django_assert_num_queries(0):
            assert reason(get(user=user), draft) == "owner"
            assert reason(get(user=other), draft) is None
            assert reason(get(), draft) is None

    def test_foreign_key_that_has_not_been_followed_costs_no_query(
        self, by, user, django_assert_num_queries
    ):
        by("author")

        with django_assert_num_queries(0):
            assert reason(get(user=user), Draft(author_id=user.pk)) == "owner"
            assert reason(get(user=user), Draft(author_id=user.pk + 1)) is None

    @pytest.mark.parametrize("name", ["ann", "bob"])
    def test_foreign_key_to_another_column_than_the_primary_key(self, by, user, other, name):
        by("editor")

        assert reason(get(user=user), Draft(editor_id=name)) == ("owner" if name == "ann" else None)

    def test_owner_of_another_model_with_the_same_key_is_not_the_user(self, by, user):
        by("section")
        section = Group.objects.create(name="Sports", pk=user.pk)

        assert reason(get(user=user), Draft(section=section)) is None
        assert reason(get(user=user), Draft(section_id=section.pk)) is None

    @pytest.mark.parametrize("of", ["author", "draft__author", "nothing", "nothing__at_all"])
    def test_object_without_an_owner(self, by, user, of):
        by(of)

        assert reason(get(user=user), Draft()) is None

    @pytest.mark.parametrize(
        "of",
        [
            f"{OWN}author_of",
            author_of,
            lambda obj: obj.author.pk,
            lambda obj: SimpleLazyObject(lambda: obj.author),
        ],
    )
    def test_by_a_callable_that_gives_a_user_or_its_key(self, by, user, other, of):
        by(of)

        assert reason(get(user=user), Draft(author=user)) == "owner"
        assert reason(get(user=other), Draft(author=user)) is None

    def test_lazy_user_of_the_request(self, by, user):
        by("author")

        assert reason(get(user=SimpleLazyObject(lambda: user)), Draft(author=user)) == "owner"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_connection_of_the_thread_is_left")
class TestAsync:
    async def test_refusal_may_ask_the_database(self, buffer, refuse):
        """It reads the lazy user, and the user's groups."""
        refuse((f"{BUILT_IN}groups", {"names": ["editors"]}))
        article = await Article.objects.acreate(title="Tea")
        user = await User.objects.acreate(username="ann")
        request = get(user=SimpleLazyObject(lambda: User.objects.get(pk=user.pk)))

        assert (await arecord_hit(article, request)).refusal is None
        await user.groups.aset([await Group.objects.acreate(name="editors")])
        assert (await arecord_hit(article, request)).refusal == "group"
