"""The middleware that counts pages."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from django_hitcount.pages.recording import may_be_page, record_page

__all__ = ["PageHitsMiddleware"]


class PageHitsMiddleware(MiddlewareMixin):
    """
    Counts each HTML page that is answered with 200 or 304 to a GET, and the whole site.

    Put it first into MIDDLEWARE, so that it also sees the pages of Django's site cache. It leaves
    responses as they are, also those that are streamed. Costs what record_page() costs.
    """

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        """Count in a thread; what is no page needs none."""
        response: HttpResponseBase = await self.get_response(request)  # type: ignore[misc]
        if may_be_page(request, response):
            await sync_to_async(record_page)(request, response)
        return response

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Count the response if it is a page."""
        if may_be_page(request, response):
            record_page(request, response)
        return response
