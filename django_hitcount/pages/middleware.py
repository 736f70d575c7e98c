"""The middleware that counts pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from django_hitcount.pages.recording import may_be_page, record_page

__all__ = ["PageHitsMiddleware"]


class PageHitsMiddleware:
    """
    Counts each HTML page that is answered with 200 or 304 to a GET, and the whole site.

    Put it first into MIDDLEWARE, so that it also sees the pages of Django's site cache. It leaves
    responses as they are, also those that are streamed. Costs what record_page() costs.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._call_async(request)
        response: HttpResponseBase = self._get_response(request)
        if may_be_page(request, response):
            record_page(request, response)
        return response

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await self._get_response(request)
        if may_be_page(request, response):
            await sync_to_async(record_page)(request, response)
        return response
