"""The address of a client, and of how many it may be one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from python_ipware import IpWare

from django_hitcount import conf
from django_hitcount.conf.converters import Network

Address = IPv4Address | IPv6Address

_DOTTED_QUAD = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)

IPV6_PREFIX = 64
"""Leading bits that all addresses of one household share; the rest changes by the hour."""

MOST_HOPS = 32
"""Entries of X-Forwarded-For looked at, from the right: no site has more proxies."""

LONGEST_HOP = 100
"""Characters of an entry that may be an address: IPv6 with brackets, a zone and a port has 70."""

REMEMBERED_HOPS = 4096

_PARSER = IpWare(precedence=("ADDRESS",))


def client_address(meta: Mapping[str, Any]) -> Address | None:
    """
    The address that a request came from; None if there is none to be trusted.

    X-Forwarded-For counts as far as HITCOUNT["TRUSTED_PROXIES"] wrote it: what is to the
    left of that is the client's own invention. If a proxy wrote no address there, the nearest
    address that is known counts. Never raises, whatever the headers hold.
    """
    trusted = conf.get_config().trusted_proxies
    peer = parse(str(meta.get("REMOTE_ADDR") or ""))
    forwarded_for = str(meta.get("HTTP_X_FORWARDED_FOR") or "")
    if not trusted or not forwarded_for:
        return peer
    hops = forwarded_for.rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    if isinstance(trusted, int):
        return (parse(hops[-trusted]) if trusted <= len(hops) else None) or peer
    return _last_untrusted(peer, hops, trusted)


def _last_untrusted(
    peer: Address | None, hops: list[str], trusted: tuple[Network, ...]
) -> Address | None:
    """The first address from the right that is no proxy; each hop vouches for the next."""
    address = peer
    for hop in reversed(hops):
        before = parse(hop)
        if before is None or not is_within(address, trusted):
            return address
        address = before
    return address


def parse(text: str) -> Address | None:
    """An address as proxies write it (with a port, in brackets, mapped to IPv6), or None."""
    # Anybody can send a header of many kilobytes: not to be kept in a cache.
    return _parse(text) if len(text) <= LONGEST_HOP and "," not in text else None


@lru_cache(maxsize=REMEMBERED_HOPS)
def _parse(text: str) -> Address | None:
    address: Address | None
    address, _ = _PARSER.get_client_ip({"ADDRESS": text})
    return address


def is_within(address: Address | None, networks: tuple[Network, ...]) -> bool:
    """Whether ``address`` is in one of ``networks``."""
    return address is not None and any(address in network for network in networks)


def client_household(meta: Mapping[str, Any]) -> str | None:
    """What stands for the client of a request: household() of client_address()."""
    remote = str(meta.get("REMOTE_ADDR") or "")
    if not conf.get_config().trusted_proxies and _DOTTED_QUAD.fullmatch(remote):
        return remote  # The server wrote it, and parsing costs as much as all else of a visitor.
    address = client_address(meta)
    return household(address) if address else None


def household(address: Address) -> str:
    """What stands for a client: an IPv4 address, or the /64 network of an IPv6 address."""
    if isinstance(address, IPv4Address):
        return str(address)
    rest = 128 - IPV6_PREFIX
    return f"{IPv6Address(int(address) >> rest << rest)}/{IPV6_PREFIX}"
