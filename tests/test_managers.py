"""The mixin leaves a model its managers."""

from __future__ import annotations

import pytest
from django.apps.registry import Apps
from django.contrib.auth.models import UserManager
from django.core import checks
from django.db import models
from django.db.migrations.state import ModelState
from django.test.utils import isolate_apps

from django_hitcount.models import HitCountManager, HitCountMixin, HitCountQuerySet, with_hits
from tests.app.models import Article, Essay, Featured, LiveManager, Novel, Poem, Reader, Review

pytestmark = pytest.mark.django_db(transaction=True)


def managers_of(model: type[models.Model]) -> dict[str, type[models.Manager]]:
    return {manager.name: type(manager) for manager in model._meta.managers}


def test_user_keeps_what_makes_users(buffer):
    reader = Reader.objects.create_user("ann", password="tea")
    reader.record_hit()

    assert managers_of(Reader) == {"objects": UserManager}
    assert Reader.objects.get_by_natural_key("ann") == reader
    assert with_hits(Reader.objects.all()).get().hits == 1
    assert reader.hits == 1


def test_user_keeps_its_manager_in_migrations():
    assert [name for name, _ in ModelState.from_model(Reader).managers] == ["objects"]


@pytest.mark.parametrize("model", [Essay, Poem])
def test_base_that_hides_drafts_goes_on_hiding_them(model):
    model.everything.create(live=False)
    shown = model.everything.create(live=True)

    assert managers_of(model) == {"objects": LiveManager, "everything": models.Manager}
    assert type(model._default_manager) is LiveManager
    assert [*model.objects.all()] == [shown]


@pytest.mark.parametrize("model", [Essay, Poem])
def test_base_keeps_its_options(model):
    assert model._meta.ordering == ["-pk"]


def test_model_without_a_manager_gets_ours():
    assert managers_of(Article) == {"objects": HitCountManager}
    assert type(Article._default_manager) is HitCountManager
    assert isinstance(Article.objects.all(), HitCountQuerySet)


def test_proxy_and_child_inherit_ours():
    for model in (Featured, Review):
        assert managers_of(model) == {"objects": HitCountManager}
        assert model.objects.model is model


def test_model_with_a_manager_gets_no_other():
    assert [*managers_of(Novel)] == ["published"]
    assert not hasattr(Novel, "objects")


def test_manager_is_in_no_migration():
    state = ModelState.from_model(Article)

    assert state.managers == []
    assert state.bases == (models.Model,)
    state.render(Apps())


class WagtailLikeQuerySet(models.QuerySet):
    def live(self):
        return self.filter(live=True)


class WagtailLikeManager(models.Manager.from_queryset(WagtailLikeQuerySet)):
    use_in_migrations = False


class OneMore(models.Manager):
    pass


def wagtail_like_models(*, is_mixin_first: bool) -> tuple[type[models.Model], ...]:
    """A page and a child of it, as Wagtail has them: the page is concrete."""

    class BasePage(models.Model):
        objects = WagtailLikeManager()

        class Meta:
            abstract = True
            app_label = "app"

    class WagtailPage(BasePage):
        live = models.BooleanField()

        class Meta:
            app_label = "app"

    bases = (HitCountMixin, WagtailPage) if is_mixin_first else (WagtailPage, HitCountMixin)

    class RecipePage(*bases):
        class Meta:
            app_label = "app"

    class CakePage(RecipePage):
        class Meta:
            app_label = "app"

    return RecipePage, CakePage


@pytest.mark.parametrize("is_mixin_first", [True, False])
@isolate_apps("tests.app")
def test_page_of_wagtail_keeps_its_manager(is_mixin_first):
    for model in wagtail_like_models(is_mixin_first=is_mixin_first):
        assert managers_of(model) == {"objects": WagtailLikeManager}
        assert [message for message in model.check() if message.level >= checks.ERROR] == []
        assert isinstance(with_hits(model.objects.live()), WagtailLikeQuerySet)
        assert ModelState.from_model(model).managers == []


@isolate_apps("tests.app")
def test_all_orders_of_three_bases():
    class First(models.Model):
        first = OneMore()

        class Meta:
            abstract = True

    class Second(models.Model):
        second = WagtailLikeManager()

        class Meta:
            abstract = True
            default_manager_name = "second"

    for number, bases in enumerate(
        [
            (HitCountMixin, First, Second),
            (First, HitCountMixin, Second),
            (First, Second, HitCountMixin),
        ]
    ):
        meta = type("Meta", (), {"app_label": "app"})
        model = type(f"Model{number}", bases, {"__module__": __name__, "Meta": meta})
        plain = type(
            f"Plain{number}",
            tuple(base for base in bases if base is not HitCountMixin),
            {"__module__": __name__, "Meta": meta},
        )
        assert managers_of(model) == managers_of(plain)
        assert type(model._default_manager) is type(plain._default_manager)


@isolate_apps("tests.app")
def test_default_manager_name_of_a_base_is_kept():
    class Base(models.Model):
        first = OneMore()
        second = WagtailLikeManager()

        class Meta:
            abstract = True
            app_label = "app"
            default_manager_name = "second"

    class Child(HitCountMixin, Base):
        pass

    assert type(Child._default_manager) is WagtailLikeManager


@isolate_apps("tests.app")
def test_manager_that_django_made_for_a_parent_gives_way():
    class Parent(models.Model):
        class Meta:
            app_label = "app"

    class Child(HitCountMixin, Parent):
        class Meta:
            app_label = "app"

    class Proxy(HitCountMixin, Parent):
        class Meta:
            app_label = "app"
            proxy = True

    assert managers_of(Parent) == {"objects": models.Manager}
    assert managers_of(Child) == managers_of(Proxy) == {"objects": HitCountManager}


@isolate_apps("tests.app")
def test_abstract_children_hand_the_mixin_on():
    class Base(HitCountMixin, models.Model):
        class Meta:
            abstract = True
            app_label = "app"

    class Child(Base):
        class Meta(Base.Meta):
            default_manager_name = "objects"

    class Managed(Base):
        objects = OneMore()

        class Meta(Base.Meta):
            pass

    assert managers_of(Child) == {"objects": HitCountManager}
    assert managers_of(Managed) == {"objects": OneMore}
    with pytest.raises(AttributeError):
        Base.objects.all()


def test_managers_from_querysets_know_with_hits(buffer):
    Novel.published.create(live=True).record_hit()

    assert Novel.published.with_hits().live().get().hits == 1


@pytest.mark.parametrize("is_mixin_first", [True, False])
@isolate_apps("tests.app")
def test_ordering_of_a_parent_with_a_table_is_kept_if_it_stands_first(is_mixin_first):
    """Django does so with any abstract class; the documentation says so."""

    class Parent(models.Model):
        class Meta:
            app_label = "app"
            ordering = ["pk"]

    bases = (HitCountMixin, Parent) if is_mixin_first else (Parent, HitCountMixin)

    class Child(*bases):
        class Meta:
            app_label = "app"

    assert Child._meta.ordering == ([] if is_mixin_first else ["pk"])
    assert managers_of(Child) == {"objects": HitCountManager}
