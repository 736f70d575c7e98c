"""A throttle that admits no two requests at once, over all processes and machines."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from django_hitcount.db.transactions import DATABASE_ERRORS
from django_hitcount.exceptions import BufferUnavailable
from django_hitcount.throttle import Throttle
from django_hitcount.visitors.addresses import client_network

logger = logging.getLogger("django_hitcount")


class IntervalThrottle(BaseThrottle):
    """
    Admits a client once per interval, over all processes and machines; see Throttle::

        class SearchThrottle(IntervalThrottle):
            seconds = 2

        class SearchView(APIView):
            throttle_classes = [SearchThrottle]

    A client is a user who is logged in, or else an address: HITCOUNT["TRUSTED_PROXIES"] says which.
    Views with the same class share its intervals. While the server is away, and for a proxy that
    TRUSTED_PROXIES does not name, nobody is held up.

    Without Redis, a view within ATOMIC_REQUESTS that fails takes its admission back, so whoever
    guesses passwords is not held up: use Redis, or transaction.non_atomic_requests().

    The name of the interval is a hash keyed with SECRET_KEY, so no user and no address is stored.
    Costs what Throttle.admit() costs.
    """

    seconds: ClassVar[float] = 1
    """The length of the interval, from 0.001 to 366 days."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Return whether the client is admitted. If so, its next interval begins now."""
        client = self.find_client(request)
        if client is None:
            return True
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        name = salted_hmac(kind, client, algorithm="sha256").hexdigest()
        try:
            return Throttle(name, self.seconds).admit()
        except (BufferUnavailable, *DATABASE_ERRORS) as exc:
            logger.error("A request is not throttled: %s", exc)
            return True

    def find_client(self, request: Request) -> str | None:
        """Return what identifies the client; None to admit the request. It is not stored."""
        if request.user and request.user.is_authenticated:
            return f"user:{request.user.pk}"
        address = client_network(request.META, for_limit=True)
        return f"address:{address}" if address else None

    def wait(self) -> float:
        """Return for how many seconds the client has to wait at most."""
        return self.seconds
