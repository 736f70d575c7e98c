"""The address of a client, whatever clients and proxies write into headers."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from django.test import override_settings
from hypothesis import example, given
from hypothesis import strategies as st

from django_hitcount.conf.kinds import parse_network
from django_hitcount.visitors.addresses import (
    LONGEST_HOP,
    MOST_HOPS,
    _parse_cached,
    client_address,
    client_network,
    is_within,
    network_of,
    parse_address,
)

CLIENT, FORGED = "203.0.113.9", "198.51.100.66"
PEER, PROXY, EDGE = "10.0.0.1", "10.0.0.2", "192.0.2.1"
PROXIES = ["10.0.0.0/8", "192.0.2.1", "2001:db8:10::/48"]


def address(forwarded_for=None, peer=PEER, **headers) -> str | None:
    meta = {"REMOTE_ADDR": peer, **headers}
    if forwarded_for is not None:
        meta["HTTP_X_FORWARDED_FOR"] = forwarded_for
    found = client_address(meta)
    return found and str(found)


@pytest.fixture
def trust(settings):
    def set_trusted(trusted):
        settings.HITCOUNT = {"TRUSTED_PROXIES": trusted}

    return set_trusted


class TestNothingTrusted:
    """The default."""

    @pytest.mark.parametrize("forwarded_for", [FORGED, f"{FORGED}, {PROXY}", "127.0.0.1", "::1"])
    def test_forwarded_for_changes_nothing(self, forwarded_for):
        assert address(forwarded_for, peer=CLIENT) == CLIENT

    @pytest.mark.parametrize("trusted", [0, [], ()])
    def test_it_can_be_said_explicitly(self, trust, trusted):
        trust(trusted)

        assert address(FORGED, peer=CLIENT) == CLIENT

    @pytest.mark.parametrize(
        "name",
        [
            *("X_REAL_IP", "CLIENT_IP", "FORWARDED", "CF_CONNECTING_IP", "TRUE_CLIENT_IP"),
            *("X_CLUSTER_CLIENT_IP", "X_CLIENT_IP", "FORWARDED_FOR", "REMOTE_ADDR", "ADDRESS"),
        ],
    )
    def test_no_other_header_counts(self, name):
        assert address(peer=CLIENT, **{f"HTTP_{name}": FORGED, name: CLIENT}) == CLIENT
        assert address(peer="", **{f"HTTP_{name}": FORGED}) is None

    def test_peer_that_is_itself_private_is_not_looked_behind(self):
        assert address(FORGED, peer="127.0.0.1") == "127.0.0.1"

    @given(st.text(), st.text())
    def test_whatever_a_client_writes(self, forwarded_for, other):
        assert address(forwarded_for, peer=CLIENT, HTTP_FORWARDED=other) == CLIENT


class TestNumberOfProxies:
    @pytest.mark.parametrize(
        ("forwarded_for", "expected"),
        [
            (CLIENT, CLIENT),
            (f"{FORGED}, {CLIENT}", CLIENT),
            (f"{FORGED},{FORGED},{CLIENT}", CLIENT),
            (f"junk, , {CLIENT}", CLIENT),
            (f"{FORGED}, 10.9.9.9", "10.9.9.9"),
        ],
    )
    def test_one_proxy_wrote_the_last_entry(self, trust, forwarded_for, expected):
        trust(1)

        assert address(forwarded_for) == expected

    @pytest.mark.parametrize(
        ("forwarded_for", "expected"),
        [
            (f"{CLIENT}, {EDGE}", CLIENT),
            (f"{FORGED}, {CLIENT}, {EDGE}", CLIENT),
            (f"{CLIENT}, junk", CLIENT),
        ],
    )
    def test_two_proxies_wrote_the_last_two(self, trust, forwarded_for, expected):
        trust(2)

        assert address(forwarded_for) == expected

    @pytest.mark.parametrize(
        ("trusted", "forwarded_for"),
        [(1, ""), (1, None), (1, "junk"), (1, f"{FORGED},"), (2, FORGED), (2, f"junk, {EDGE}")],
    )
    def test_what_the_proxy_did_not_write_is_not_made_up(self, trust, trusted, forwarded_for):
        trust(trusted)

        assert address(forwarded_for) == PEER

    @given(st.text())
    @example("198.51.100.66")
    @example("198.51.100.66, 10.0.0.2")
    @example('"198.51.100.66')
    def test_only_the_last_entry_matters(self, forged):
        with override_settings(HITCOUNT={"TRUSTED_PROXIES": 1}):
            assert address(f"{forged}, {CLIENT}") == address(CLIENT) == CLIENT


class TestNetworksOfProxies:
    @pytest.fixture(autouse=True)
    def proxies(self, trust):
        trust(PROXIES)

    @pytest.mark.parametrize(
        "forwarded_for",
        [
            CLIENT,
            f"{CLIENT}, {PROXY}",
            f"{CLIENT}, {EDGE}, {PROXY}",
            f"{FORGED}, {CLIENT}, {PROXY}",
            f"{FORGED}, {PROXY}, {CLIENT}, {PROXY}",
            f"{CLIENT}, ::ffff:10.0.0.2",
            f"{CLIENT}, 2001:db8:10::5, {PROXY}",
            f"{CLIENT}, [2001:db8:10::5]:443, {PROXY}:8080",
        ],
    )
    def test_first_address_from_the_right_that_is_no_proxy(self, forwarded_for):
        assert address(forwarded_for) == CLIENT

    @pytest.mark.parametrize("peer", [CLIENT, "192.0.2.2", "2001:db8:11::1", "::ffff:203.0.113.9"])
    def test_peer_that_is_no_proxy_is_the_client(self, peer):
        assert address(FORGED, peer=peer) == str(parse_address(peer))

    def test_proxy_of_ipv4_on_a_socket_of_ipv6(self):
        assert address(CLIENT, peer="::ffff:10.0.0.1") == CLIENT

    @pytest.mark.parametrize(
        ("forwarded_for", "expected"),
        [("junk", PEER), (f"junk, {PROXY}", PROXY), (f"{FORGED}, , {PROXY}", PROXY), ("", PEER)],
    )
    def test_nothing_counts_beyond_what_is_no_address(self, forwarded_for, expected):
        assert address(forwarded_for) == expected

    def test_a_chain_of_proxies_only_ends_at_the_furthest(self):
        assert address(f"{EDGE}, {PROXY}") == EDGE

    @given(st.text())
    @example("10.0.0.7")
    def test_nothing_left_of_the_client_matters(self, forged):
        with override_settings(HITCOUNT={"TRUSTED_PROXIES": PROXIES}):
            assert address(f"{forged}, {CLIENT}, {PROXY}") == CLIENT


class TestUnixSocket:
    """The server knows no address of its peer."""

    @pytest.mark.parametrize("peer", ["", None, "unix:", "@"])
    def test_no_proxy_is_trusted_by_default(self, peer):
        assert address(FORGED, peer=peer) is None

    def test_no_address_at_all(self):
        assert client_address({}) is None

    def test_number_of_proxies(self, trust):
        trust(1)

        assert address(f"{FORGED}, {CLIENT}", peer="") == CLIENT
        assert address(peer="") is None

    def test_networks_do_not_hold_a_socket(self, trust):
        trust(PROXIES)

        assert address(CLIENT, peer="") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        (" \t203.0.113.9 ", "203.0.113.9"),
        ("203.0.113.9:54321", "203.0.113.9"),
        ('"203.0.113.9"', "203.0.113.9"),
        ("2001:DB8::0009", "2001:db8::9"),
        ("[2001:db8::9]", "2001:db8::9"),
        ("[2001:db8::9]:443", "2001:db8::9"),
        ('"[2001:db8::9]:443"', "2001:db8::9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("::ffff:cb00:7109", "203.0.113.9"),
        ("[::ffff:203.0.113.9]:443", "203.0.113.9"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("[fe80::1%eth0]:443", "fe80::1%eth0"),
        ("64:ff9b::203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
    ],
)
def test_every_spelling_of_an_address(text, expected):
    assert str(parse_address(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "unknown", "_hidden", "-", "localhost", "example.com", "203.0.113", "1", "0x1"),
        *("203.0.113.256", "203.0.113.9.1", "203.0.113.09", "203.0.113.9/32", "203.0.113.9:"),
        *("203.0.113.9:99999", "203.0.113.9:x", "203.0.113.9;", "[203.0.113.9", "2001:db8::9]"),
        *("[2001:db8::9]x", "[]", ":", "::ffff:203.0.113.999", "2001:db8:::9", "fe80::1%"),
        *("fe80::1%" + "x" * 300, "\0", "203.0.113.9\0", "\ud800", "é", "٢٠٣.0.113.9"),
        *("203.0.113.9, 192.0.2.1", "10.0.0.1,203.0.113.9", "203.0.113.9,"),
        *("0.0.0.0", "::", "255.255.255.255", "224.0.0.1", "ff02::1", "0.1.2.3"),
    ],
)
def test_what_is_no_address_of_a_client_is_none(trust, text):
    trust(1)

    assert parse_address(text) is None
    assert address(peer=text) is None
    if "," not in text:
        assert address(f"{FORGED}, {text}") == PEER


@given(
    st.text(),
    st.text() | st.none(),
    st.sampled_from([0, 1, 2, 20, PROXIES, ["0.0.0.0/0", "::/0"]]),
)
@example(PEER, "fe80::1%eth0, fe80::1%25", ["fe80::/10", "10.0.0.0/8"])
@example("1" * 5000, "1." * 5000, 1)
@example(PEER, "[::1]:" + "9" * 90, 1)
def test_no_header_raises(peer, forwarded_for, trusted):
    with override_settings(HITCOUNT={"TRUSTED_PROXIES": trusted}):
        found = client_address({"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded_for})

    assert found is None or network_of(found)


@given(st.ip_addresses(), st.integers(0, 65535))
def test_port_and_brackets_change_no_address(found, port):
    plain = str(found)
    in_brackets = f"[{plain}]" if found.version == 6 else plain

    assert (
        parse_address(plain) == parse_address(in_brackets) == parse_address(f"{in_brackets}:{port}")
    )


class TestHugeHeaders:
    """A header of many kilobytes costs no more than a small one, and is not kept."""

    @pytest.mark.parametrize("trusted", [1, PROXIES])
    @pytest.mark.parametrize(
        "forged", [f"{FORGED}," * 10_000, " " * 60_000, "9" * 60_000, "," * 60_000]
    )
    def test_entry_of_the_proxy_counts(self, trust, trusted, forged):
        trust(trusted)

        assert address(f"{forged}, {CLIENT}") == CLIENT

    def test_chain_that_pretends_to_be_proxies_is_not_followed_for_ever(self, trust):
        trust(PROXIES)
        chain = [f"10.1.{number // 256}.{number % 256}" for number in range(5000)]
        _parse_cached.cache_clear()

        assert address(", ".join(chain)) == chain[-MOST_HOPS]
        assert _parse_cached.cache_info().misses == MOST_HOPS + 1

    @pytest.mark.parametrize("more", [1, 2])
    def test_rest_of_a_chain_is_no_entry(self, trust, more):
        trust(PROXIES)
        chain = [f"10.1.0.{number}" for number in range(MOST_HOPS + more)]

        assert address(",".join(chain)) == chain[-MOST_HOPS]

    def test_long_entry_is_no_address_and_is_not_kept(self, trust):
        trust(1)
        _parse_cached.cache_clear()

        assert address(" " * LONGEST_HOP + CLIENT) == PEER
        assert _parse_cached.cache_info().currsize == 1

    def test_forged_entries_are_not_even_read(self, trust):
        trust(1)
        _parse_cached.cache_clear()
        address(f"{FORGED}, {FORGED}, {CLIENT}")

        assert _parse_cached.cache_info().currsize == 2


def test_changed_setting_takes_effect(trust):
    assert address(CLIENT) == PEER
    trust(1)
    assert address(CLIENT) == CLIENT
    trust(PROXIES)
    assert address(f"{CLIENT}, {EDGE}") == CLIENT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_ipv6_is_one_network_by_64_bits_and_ipv4_an_address(text, expected):
    assert ip_network(network_of(ip_address(text))) == ip_network(expected)


@pytest.mark.parametrize("trusted", [0, 1, PROXIES])
@pytest.mark.parametrize("peer", [CLIENT, PEER, "::ffff:203.0.113.9", "2001:db8:1:2::3", "", "x"])
@pytest.mark.parametrize("forwarded_for", ["", FORGED, "2001:db8:1:2::3", "junk"])
def test_network_of_a_client_is_that_of_its_address(trust, trusted, peer, forwarded_for):
    trust(trusted)
    meta = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_FOR": forwarded_for}
    found = client_address(meta)

    assert client_network(meta) == (found and network_of(found))


def test_address_is_within_networks_of_its_own_kind_only():
    found = tuple(map(parse_network, ["198.51.100.0/24", "2001:db8::/32", "192.0.2.7"]))

    assert [
        text
        for text in ("198.51.100.255", "198.51.101.0", "192.0.2.7", "192.0.2.8", "2001:db8::1")
        if is_within(ip_address(text), found)
    ] == ["198.51.100.255", "192.0.2.7", "2001:db8::1"]
    assert not is_within(ip_address("2001:db9::"), found)
    assert not is_within(None, found)
