"""The address of a client, and the network that the people of its home share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from python_ipware import IpWare

from django_hitcount import conf
from django_hitcount.conf.kinds import Network, parse_network

Address = IPv4Address | IPv6Address

_DOTTED_QUAD = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)

IPV6_PREFIX = 64
"""Leading bits that all addresses of a home share. The other bits change every hour."""

MOST_HOPS = 32
"""Entries of X-Forwarded-For that are read, from the right. No site has more proxies."""

LONGEST_HOP = 100
"""Longer entries are not parsed. An IPv6 address with brackets, zone and port has 70 characters."""

REMEMBERED_HOPS = 4096
"""Parsed addresses that a process caches. Parsing would double the cost of a visitor."""

_INTERNAL = (
    *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
    *("100.64.0.0/10", "::1", "fc00::/7", "fe80::/10"),
)
INTERNAL_NETWORKS = tuple(map(parse_network, _INTERNAL))
"""Networks that a proxy may be in, but not a client of a public site."""

_PARSER = IpWare(precedence=("ADDRESS",))


def client_address(meta: Mapping[str, Any]) -> Address | None:
    """
    Return the address that a request came from, or None if no address can be trusted.

    Uses only those entries of X-Forwarded-For that HITCOUNT["TRUSTED_PROXIES"] have written: a
    client can write anything to the left of them. If a proxy has not written an address, uses the
    nearest known address. Never raises, whatever the headers contain.
    """
    trusted = conf.get_config().trusted_proxies
    peer = parse_address(str(meta.get("REMOTE_ADDR") or ""))
    forwarded_for = str(meta.get("HTTP_X_FORWARDED_FOR") or "")
    if not trusted or not forwarded_for:
        return peer
    hops = forwarded_for.rsplit(",", MOST_HOPS)[-MOST_HOPS:]
    if isinstance(trusted, int):
        return (parse_address(hops[-trusted]) if trusted <= len(hops) else None) or peer
    return _last_untrusted(peer, hops, trusted)


def _last_untrusted(
    peer: Address | None, hops: list[str], trusted: tuple[Network, ...]
) -> Address | None:
    """Return the first address from the right that is not a trusted proxy."""
    address = peer
    for hop in reversed(hops):
        before = parse_address(hop)
        if before is None or not is_within(address, trusted):
            return address
        address = before
    return address


def parse_address(text: str) -> Address | None:
    """
    Parse an address as proxies write it: with a port, in brackets, or mapped to IPv6.

    Returns None if ``text`` is not an address.
    """
    # A client can send headers of many kilobytes, which must not fill the cache.
    return _parse_cached(text) if len(text) <= LONGEST_HOP and "," not in text else None


@lru_cache(maxsize=REMEMBERED_HOPS)
def _parse_cached(text: str) -> Address | None:
    address: Address | None
    address, _ = _PARSER.get_client_ip({"ADDRESS": text})
    return address


def is_within(address: Address | None, networks: tuple[Network, ...]) -> bool:
    """Return whether ``address`` is in one of ``networks``."""
    return address is not None and any(address in network for network in networks)


def client_network(meta: Mapping[str, Any], *, for_limit: bool = False) -> str | None:
    """
    Return the network_of() of the client_address(), or None if there is no address.

    With ``for_limit``, also returns None if REMOTE_ADDR is a proxy that TRUSTED_PROXIES does not
    name: all visitors would share its limit.
    """
    remote, trusted = str(meta.get("REMOTE_ADDR") or ""), conf.get_config().trusted_proxies
    is_forwarded = for_limit and not trusted and meta.get("HTTP_X_FORWARDED_FOR")
    if is_forwarded and is_within(parse_address(remote), INTERNAL_NETWORKS):
        return None
    if not trusted and _DOTTED_QUAD.fullmatch(remote):
        return remote  # Written by the server. Parsing it would double the cost of a visitor.
    address = client_address(meta)
    return network_of(address) if address else None


def network_of(address: Address) -> str:
    """Return an IPv4 address unchanged, and an IPv6 address as its /64 network."""
    if isinstance(address, IPv4Address):
        return str(address)
    return f"{address.packed[: IPV6_PREFIX // 8].hex(':', 2)}::/{IPV6_PREFIX}"
