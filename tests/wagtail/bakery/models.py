"""Pages and a snippet whose hits are counted, as a Wagtail project would write them."""

from __future__ import annotations

from django.db import models
from wagtail.admin.panels import FieldPanel, PageChooserPanel
from wagtail.models import DraftStateMixin, Page, PageManager, PreviewableMixin, RevisionMixin
from wagtail.query import PageQuerySet
from wagtail.snippets.models import register_snippet

from django_hitcount.models import HitCountMixin, with_hits


class RecipeQuerySet(PageQuerySet):
    """A project's own queryset for its pages."""

    def quick(self) -> RecipeQuerySet:
        return self.filter(minutes__lte=15)


class HomePage(Page):
    """Lists the recipes, the most viewed first; its own views are counted without the mixin."""

    def get_context(self, request, *args, **kwargs):
        recipes = RecipePage.objects.live().child_of(self)
        return {
            **super().get_context(request, *args, **kwargs),
            "recipes": with_hits(recipes).order_by("-hits", "title"),
            "pages": with_hits(Page.objects.live().child_of(self)).order_by("title"),
        }


@register_snippet
class Ingredient(HitCountMixin, PreviewableMixin, DraftStateMixin, RevisionMixin, models.Model):
    """A snippet with drafts and previews."""

    name = models.CharField(max_length=50)

    panels = [FieldPanel("name")]

    def __str__(self) -> str:
        return self.name

    def get_preview_template(self, request, mode_name) -> str:
        return "bakery/ingredient.html"


class RecipePage(HitCountMixin, Page):
    """The mixin comes before Page."""

    minutes = models.IntegerField(default=30)
    ingredient = models.ForeignKey(Ingredient, null=True, blank=True, on_delete=models.SET_NULL)
    goes_with = models.ForeignKey(
        Page, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    objects = PageManager.from_queryset(RecipeQuerySet)()

    content_panels = [
        *Page.content_panels,
        FieldPanel("minutes"),
        FieldPanel("ingredient"),
        PageChooserPanel("goes_with"),
    ]


class StoryPage(Page, HitCountMixin):
    """The mixin comes after Page, and the model defines no manager."""


class TipPage(HitCountMixin, Page):
    """The mixin comes before Page, whose manager the model inherits."""
