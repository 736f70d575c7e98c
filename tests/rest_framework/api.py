"""An API: serializers and views, and requests of browsers to them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework import generics, pagination, permissions, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from django_hitcount.rest_framework import (
    HitCountField,
    HitCountOrderingFilter,
    HitCountRetrieveMixin,
)
from tests.app.models import Article, Reply, Section, Story
from tests.browsers import BROWSER


class ArticleSerializer(serializers.ModelSerializer):
    hits = HitCountField()
    downloads = HitCountField(counter="downloads")

    class Meta:
        model = Article
        fields = ["id", "title", "hits", "downloads"]


class WeekSerializer(serializers.ModelSerializer):
    hits = HitCountField()
    week = HitCountField(days=7)

    class Meta:
        model = Article
        fields = ["hits", "week"]


class ReplySerializer(serializers.ModelSerializer):
    hits = HitCountField()

    class Meta:
        model = Reply
        fields = ["hits"]


class StorySerializer(serializers.ModelSerializer):
    hits = HitCountField()
    replies = ReplySerializer(many=True)

    class Meta:
        model = Story
        fields = ["hits", "replies"]


class SectionSerializer(serializers.ModelSerializer):
    stories = StorySerializer(many=True)

    class Meta:
        model = Section
        fields = ["name", "stories"]


class Pages(pagination.PageNumberPagination):
    page_size = 100


class ArticleViewSet(HitCountRetrieveMixin, viewsets.ModelViewSet):
    queryset = Article.objects.order_by("pk")
    serializer_class = ArticleSerializer
    pagination_class = Pages
    filter_backends = [HitCountOrderingFilter]
    ordering_fields = ["hits", "downloads", "title"]

    @action(detail=True)
    def title(self, request: Request, pk: int) -> Response:
        return Response(self.get_object().title)


class ArticleView(HitCountRetrieveMixin, generics.RetrieveAPIView):
    queryset = Article.objects.all()
    serializer_class = ArticleSerializer
    hit_counter = "downloads"
    hit_refusals = ()


class PrivateView(ArticleView):
    permission_classes = [permissions.IsAuthenticated]


def request(method: str = "get", path: str = "/", data: Any = None, **headers: str) -> Any:
    factory = APIRequestFactory(headers={**BROWSER, **headers})
    return getattr(factory, method)(path, data)


def listed(path: str = "/", view: Any = ArticleViewSet) -> list[dict[str, Any]]:
    """The objects that the list of a viewset shows."""
    response = view.as_view({"get": "list"})(request(path=path))
    found: list[dict[str, Any]] = response.data["results"]
    return found


def shown(objs: QuerySet[Any] | list[Any], serializer: Any = ArticleSerializer) -> Any:
    """What a serializer makes of a list."""
    return serializer(objs, many=True).data
