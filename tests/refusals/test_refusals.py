"""Which hits do not count, and what is said of them."""

from __future__ import annotations

import logging
from asyncio import Future, new_event_loop
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections, models
from django.test import RequestFactory
from django.test.utils import isolate_apps
from django.utils.functional import SimpleLazyObject

from django_hitcount.counters.days import day_of
from django_hitcount.maintenance.flushing import flush
from django_hitcount.recording import Hit, arecord_hit, record_hit, record_hits
from django_hitcount.refusals import HitContext, Refusal, get_refusals, refusal, refusal_of
from django_hitcount.refused_hits import refused_between
from tests.app.models import Article
from tests.browsers import BROWSER
from tests.tables import daily_sums, slot_sums

BUILT_IN = "django_hitcount.refusals."
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


@refusal("preview", "An editor looks at a draft.")
def preview(context: HitContext) -> bool:
    return "preview" in context.request.GET


@refusal("broken", "Nobody knows.")
def broken(context: HitContext) -> bool:
    raise ZeroDivisionError


def parameter(name: str):
    return refusal("parameter", "...")(lambda context: name in context.request.GET)


def paths(prefix: str = "/drafts/"):
    return refusal("path", "...")(lambda context: context.request.path.startswith(prefix))


def author_of(obj: models.Model) -> object:
    return obj.author


def get(path="/", user=None, **headers):
    request = RequestFactory(headers={**BROWSER, **headers}).get(path)
    request.user = AnonymousUser() if user is None else user
    return request


def reason(request, obj=None, **kwargs) -> str | None:
    return refusal_of(HitContext(request, obj or Article(pk=1), "views"), **kwargs)


@pytest.fixture(autouse=True)
def nothing_fails(request, caplog) -> Iterator[None]:
    """A refusal that raises refuses nothing, as one that is not meant to."""
    yield
    assert "error" in request.node.name or not caplog.get_records("call")


@pytest.fixture
def refuse(settings):
    """Set the refusals, each by its path or by its path and one option."""

    def set_refusals(*refusals, **more):
        items = [
            item if isinstance(item, str) else {"NAME": item[0], "OPTIONS": item[1]}
            for item in refusals
        ]
        settings.HITCOUNT = {**settings.HITCOUNT, "REFUSALS": items, **more}

    return set_refusals


@pytest.fixture
def article(db) -> Article:
    return Article.objects.create(title="Tea")


@pytest.fixture
def user(db) -> User:
    return User.objects.create(username="ann", pk=5)


@pytest.fixture
def other(db) -> User:
    return User.objects.create(username="bob", pk=6)


class TestDefaults:
    def test_three_are_on(self):
        assert [found.name for found in get_refusals()] == ["method", "prefetch", "bot"]

    @pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"])
    def test_only_get_counts(self, method):
        request = RequestFactory(headers=BROWSER).generic(method, "/")
        request.method = method

        assert reason(request) == "method"
        assert reason(get()) is None

    @pytest.mark.parametrize("header", ["Sec-Purpose", "Purpose", "X-Purpose", "X-Moz"])
    @pytest.mark.parametrize(
        "value", ["prefetch", "prerender", "Prefetch", "prefetch;prerender", "preview"]
    )
    def test_page_that_is_loaded_ahead_does_not_count(self, header, value):
        assert reason(get(**{header: value})) == "prefetch"

    @pytest.mark.parametrize("value", ["", "visit", "?0"])
    def test_other_purposes_count(self, value):
        assert reason(get(**{"Sec-Purpose": value, "Purpose": value})) is None

    @pytest.mark.parametrize("user_agent", ["Googlebot/2.1", "curl/8.5.0", "", " "])
    def test_bots_do_not_count(self, user_agent):
        assert reason(get(**{"User-Agent": user_agent})) == "bot"

    def test_nor_who_sends_no_user_agent(self):
        assert reason(RequestFactory().get("/")) == "bot"

    @pytest.mark.parametrize("header", ["DNT", "Sec-GPC"])
    def test_the_others_are_off(self, header):
        assert reason(get(user=User(is_staff=True), **{header: "1"})) is None


@pytest.mark.django_db(transaction=True)
class TestRefusedHit:
    @pytest.mark.parametrize(
        ("request_", "name"),
        [
            (RequestFactory(headers=BROWSER).head("/"), "method"),
            (get(Purpose="prefetch"), "prefetch"),
            (get(**{"User-Agent": "curl/8.5.0"}), "bot"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_leaves_the_totals_and_is_counted_under_its_name(self, buffer, article, request_, name):
        record_hit(article, get())
        hits = [record_hit(article, request_) for _ in range(2)]
        flush()

        assert hits == [Hit(False, name, 1)] * 2
        assert article.hits == 1
        assert slot_sums([article]) == daily_sums([article]) == {article: 1}
        assert self.refused() == {("views", name): 2}

    def refused(self) -> dict[tuple[str, str], int]:
        rows = refused_between(day_of(), day_of())
        return {(row.counter, row.refusal): row.hits for row in rows}

    def test_caller_decides_for_each_object(self, buffer, article):
        other = Article.objects.create(title="Coffee")
        hits = record_hits([article, other], get(), refuse=lambda context: context.obj == other)
        flush()

        assert hits == [Hit(True, None, 1), Hit(False, "caller", 0)]
        assert slot_sums([article, other]) == {article: 1, other: 0}
        assert self.refused() == {("views", "caller"): 1}

    def test_mixin_takes_a_callable_too(self, buffer, article):
        assert article.record_hit(get(), refuse=lambda context: True).refusal == "caller"
        assert article.record_hit(get(), refuse=lambda context: False).refusal is None


@pytest.mark.django_db(transaction=True)
class TestAsync:
    @pytest.fixture(autouse=True)
    async def no_connection_of_the_thread_is_left(self):
        yield
        await sync_to_async(connections.close_all)()

    async def test_refusal_may_ask_the_database(self, buffer, refuse):
        """Who the lazy user is, and of which groups."""
        refuse((f"{BUILT_IN}groups", {"names": ["editors"]}))
        article = await Article.objects.acreate(title="Tea")
        user = await User.objects.acreate(username="ann")
        request = get(user=SimpleLazyObject(lambda: User.objects.get(pk=user.pk)))

        assert (await arecord_hit(article, request)).refusal is None
        await user.groups.aset([await Group.objects.acreate(name="editors")])
        assert (await arecord_hit(article, request)).refusal == "group"


class TestList:
    @pytest.mark.parametrize("order", [["method", "bot"], ["bot", "method"]])
    def test_first_that_holds_gives_the_reason(self, refuse, order):
        refuse(*(f"{BUILT_IN}{name}" for name in order))

        assert reason(RequestFactory().head("/")) == order[0]

    def test_empty_list_refuses_nothing(self, refuse):
        refuse()

        assert reason(RequestFactory().post("/")) is None

    def test_own_refusal(self, refuse):
        refuse(f"{OWN}preview")

        assert reason(get("/?preview")) == "preview"
        assert reason(get()) is None

    def test_own_refusal_with_options_as_often_as_wanted(self, refuse):
        refuse((f"{OWN}parameter", {"name": "a"}), (f"{OWN}parameter", {"name": "b"}))

        assert [reason(get(path)) for path in ("/?a", "/?b")] == ["parameter"] * 2
        assert reason(get("/?c")) is None

    def test_own_refusal_whose_options_may_be_left_out(self, refuse):
        refuse(f"{OWN}paths")

        assert reason(get("/drafts/1/")) == "path"
        assert reason(get("/articles/1/")) is None

    def test_error_in_a_refusal_is_logged_and_refuses_nothing(self, refuse, caplog):
        refuse(f"{OWN}broken", f"{OWN}preview")

        assert reason(get()) is None
        assert reason(get("/?preview")) == "preview"
        assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError] * 2


class TestCaller:
    def test_is_asked_what_is_counted_for_whom(self):
        asked = []
        request, obj = get(), Article(pk=7)
        refusal_of(HitContext(request, obj, "downloads"), refuse=asked.append)

        assert asked == [HitContext(request, obj, "downloads")]

    def test_is_asked_last(self):
        asked = []

        assert reason(get(Purpose="prefetch"), refuse=asked.append) == "prefetch"
        assert asked == []

    @pytest.mark.parametrize(("answer", "expected"), [(True, "caller"), (False, None)])
    def test_says_so(self, answer, expected):
        assert reason(get(), refuse=lambda context: answer) == expected

    def test_error_is_logged_and_refuses_nothing(self, caplog):
        assert reason(get(), refuse=lambda context: 1 / 0) is None
        assert [record.levelno for record in caplog.records] == [logging.ERROR]


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
    def test_nobody_is_logged_in(self, user):
        assert reason(get(user=user)) is None


@pytest.mark.parametrize("key", ["\0" * 32, "\U0001f36a" * 32])
def test_session_that_no_backend_makes_is_of_nobody(refuse, key):
    """Its user is not asked for: databases answer such a key with an error."""
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
    def test_costs_a_query_if_somebody_is_logged_in(self, user, django_assert_num_queries):
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
    def test_costs_two_queries_if_somebody_is_logged_in(self, user, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert reason(get()) is None
        with django_assert_num_queries(2):
            assert reason(get(user=user)) is None
            assert reason(get(user=user)) is None


class TestPreviews:
    OPTIONS = {"cookie": "draft", "header": "X-Draft-Mode"}

    @pytest.mark.parametrize("is_preview", [True, False])
    def test_wagtail_says_so_without_options(self, refuse, is_preview):
        refuse(f"{BUILT_IN}previews")
        request = get()
        request.is_preview = is_preview

        assert reason(request) == ("preview" if is_preview else None)

    def test_without_options_neither_a_cookie_nor_a_header_does(self, refuse):
        refuse(f"{BUILT_IN}previews")

        assert reason(get(cookie="draft=1", x_draft_mode="1")) is None

    @pytest.mark.parametrize(
        "header",
        [{"cookie": "a=1; draft=yes"}, {"x-draft-mode": "1"}, {"X-DRAFT-MODE": "no"}],
    )
    def test_cookie_or_header_by_option(self, refuse, header):
        refuse((f"{BUILT_IN}previews", self.OPTIONS))

        assert reason(get(**header)) == "preview"

    @pytest.mark.parametrize(
        "header", [{}, {"cookie": "draft="}, {"cookie": "drafts=1"}, {"x-draft-mode": ""}]
    )
    def test_neither_of_them(self, refuse, header):
        refuse((f"{BUILT_IN}previews", self.OPTIONS))

        assert reason(get(**header)) is None


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

    def test_owner_of_another_model_with_the_same_key_is_somebody_else(self, by, user):
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


class TestAddresses:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        listed = ["192.0.2.0/24", "198.51.100.7", "2001:db8::/32"]
        refuse((f"{BUILT_IN}addresses", {"networks": listed}), TRUSTED_PROXIES=["10.0.0.0/8"])

    def came_from(self, address, forwarded_for=""):
        request = get()
        request.META |= {"REMOTE_ADDR": address, "HTTP_X_FORWARDED_FOR": forwarded_for}
        return reason(request)

    @pytest.mark.parametrize(
        "address", ["192.0.2.255", "198.51.100.7", "2001:db8:ffff::1", "::ffff:192.0.2.1"]
    )
    def test_client_in_one_of_the_networks(self, address):
        assert self.came_from(address) == "address"

    @pytest.mark.parametrize("address", ["192.0.3.0", "198.51.100.8", "2001:db9::1", "", "junk"])
    def test_any_other(self, address):
        assert self.came_from(address) is None

    def test_proxies_are_looked_behind_if_they_are_trusted(self):
        assert self.came_from("10.0.0.1", "192.0.2.1") == "address"
        assert self.came_from("203.0.113.9", "192.0.2.1") is None
        assert self.came_from("192.0.2.1", "203.0.113.9") == "address"


class TestUserAgents:
    @pytest.fixture(autouse=True)
    def on(self, refuse):
        refuse((f"{BUILT_IN}user_agents", {"patterns": ["^monitor/", r"\bkiosk\b"]}))

    @pytest.mark.parametrize("user_agent", ["Monitor/7", "Mozilla/5.0 (KIOSK; Linux)"])
    def test_one_of_the_patterns_is_found(self, user_agent):
        assert reason(get(**{"User-Agent": user_agent})) == "user_agent"

    @pytest.mark.parametrize("user_agent", ["My Monitor/7", "kiosks", "", "x" * 5000 + " kiosk"])
    def test_none_is(self, user_agent):
        assert reason(get(**{"User-Agent": user_agent})) is None

    def test_no_user_agent_at_all(self):
        assert reason(RequestFactory().get("/")) is None


@pytest.mark.parametrize(
    ("header", "name"), [("DNT", "do_not_track"), ("Sec-GPC", "global_privacy_control")]
)
@pytest.mark.parametrize(("value", "is_refused"), [("1", True), ("0", False), ("", False)])
def test_who_asks_not_to_be_tracked(refuse, header, name, value, is_refused):
    refuse(f"{BUILT_IN}{name}")

    assert reason(get(**{header: value})) == (name if is_refused else None)
    assert reason(get()) is None


def named(name: str) -> Refusal:
    return Refusal(name, "...", bool)


class TestMistakes:
    async def never_awaited(self):
        """A coroutine is true."""

    @pytest.mark.parametrize(
        "name",
        [
            *("repeat", "caller", "unavailable", "no_request", "unsaved"),
            *("", "Preview", "pre view", "a:b", "1st", "é", "x" * 51, None, 5),
        ],
    )
    @pytest.mark.parametrize("make", [lambda name: refusal(name, "...")(bool), named])
    def test_name_that_means_something_else_or_does_not_fit(self, name, make):
        with pytest.raises(ValueError, match=f"cannot be named {name!r}: use a lower case"):
            make(name)

    def test_coroutine_function_is_no_refusal(self):
        class Asynchronous:
            async def __call__(self, context: HitContext) -> bool:
                return False

        for refuses in (self.never_awaited, Asynchronous()):
            with pytest.raises(ValueError, match="Make it a plain function"):
                refusal("mine", "A reason.")(refuses)

    def test_awaitable_answer_is_logged_as_an_error(self, caplog):
        context = HitContext(RequestFactory(headers=BROWSER).get("/"), Article(), "views")
        answer = Future(loop=new_event_loop())
        answer.get_loop().close()

        assert refusal_of(context, lambda context: answer) is None
        assert "nobody awaits it" in caplog.text

    def test_coroutine_function_does_not_decide_on_a_hit(self):
        context = HitContext(RequestFactory(headers=BROWSER).get("/"), Article(), "views")

        with pytest.raises(ValueError, match="Make it a plain function"):
            refusal_of(context, self.never_awaited)
