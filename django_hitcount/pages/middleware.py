"""The middleware that counts pages."""

from __future__ import annotations

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

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Count the response if it is a page. In an async site, Django calls it in a thread."""
        if may_be_page(request, response):
            record_page(request, response)
        return response
