"""IP networks, as settings and refusals name them."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network


def parse_network(text: str) -> Network:
    """
    Parse an IP network or a single address.

    Raises ValueError if ``text`` is neither, and for IPv4 addresses mapped to IPv6: clients'
    addresses are never compared in that form.
    """
    try:
        network = ip_network(text)
    except ValueError as exc:
        raise ValueError(f"invalid IP address or network: {text!r} ({exc})") from exc
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError(
            f"invalid IP address or network: {text!r} (addresses mapped to IPv6 are compared "
            "as IPv4)"
        )
    return network
