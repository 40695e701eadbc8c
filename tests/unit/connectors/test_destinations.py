"""Where the server connects for its users: which hosts settings name, and which addresses are allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any

import pytest

from leatstream.connectors import destinations
from leatstream.connectors.destinations import Destinations, Host, addresses_of, hosts_in, hosts_of
from leatstream.connectors.registry import connector_classes
from leatstream.connectors.settings import Connects, settings_of
from leatstream.model.networks import Networks

PUBLIC = ("8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8")
PRIVATE = ("10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd12::1", "::ffff:10.0.0.1")
ITSELF = ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::")
METADATA = ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "64:ff9b::a9fe:a9fe")
OTHERS = ("169.254.1.1", "fe80::1", "fe80::1%eth0", "100.64.0.1", "224.0.0.1", "2002:7f00:1::", "::7f00:1")


def allowed(setting: str, *addresses: str) -> list[bool]:
    networks = Networks.read(setting)
    return [networks.fault(ip_address(one)) is None for one in addresses]


def test_only_public_addresses_are_allowed_by_default() -> None:
    assert all(allowed("", *PUBLIC))
    assert not any(allowed("", *PRIVATE, *ITSELF, *METADATA, *OTHERS))


@pytest.mark.parametrize(
    ("setting", "inside", "outside"),
    [
        ("10.0.0.0/8", ["10.1.2.3", "::ffff:10.0.0.1"], ["192.168.1.1", "127.0.0.1"]),
        ("10.1.2.3", ["10.1.2.3"], ["10.1.2.4"]),
        ("private", [*PRIVATE], [*ITSELF, *METADATA, *OTHERS]),
        (" Private , loopback ", [*PRIVATE, "127.0.0.1", "::1"], [*METADATA, "169.254.1.1"]),
        ("fd00::/8, 169.254.0.0/16, fe80::/10", ["169.254.1.1", "fe80::1"], [*METADATA]),
        ("169.254.169.254", ["169.254.169.254"], ["169.254.1.1"]),
        ("*", [*PUBLIC, *PRIVATE, *ITSELF, *METADATA, *OTHERS], []),
    ],
)
def test_what_the_setting_allows(setting: str, inside: list[str], outside: list[str]) -> None:
    assert all(allowed(setting, *inside))
    assert not any(allowed(setting, *outside))


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/33", "10.0.0", "300.1.1.1", "https://kafka", "kafka:9092", "a b"]
)
def test_an_entry_that_is_none(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a network such as"):
        Networks.read(f"private,{entry}")


def test_names_are_allowed_wherever_they_are() -> None:
    networks = Networks.read("kafka, *.svc.cluster.local")
    found = [
        networks.has_name(one) for one in ("kafka", "KAFKA.", "a.b.svc.cluster.local", "svc.cluster.local")
    ]
    assert found == [True, True, True, False]
    assert not networks.has_name("evil-svc.cluster.local")


@pytest.mark.parametrize(
    ("value", "hosts"),
    [
        ("b1:9092, b2.example.com:9092", ["b1", "b2.example.com"]),
        ("[::1]:9092,10.0.0.1:9", ["::1", "10.0.0.1"]),
        ("::1", ["::1"]),
        ("https://[fe80::1]:8081/path,http://Registry:8081", ["fe80::1", "registry"]),
        ("db.example.com", ["db.example.com"]),
        ("http://[", []),
    ],
)
def test_hosts_of_a_value(value: str, hosts: list[str]) -> None:
    assert hosts_in("x", value) == [Host("x", host) for host in hosts]


@pytest.mark.parametrize("kind", sorted(connector_classes()))
def test_every_address_of_a_kind_is_looked_at(kind: str) -> None:
    names = ("host", "uri", "url", "servers")
    for one in settings_of(connector_classes()[kind].Config):
        if one.path[-1].split("_")[-1] in names:
            assert one.find(Connects), f"{one.dotted} of {kind} names a host"


def test_hosts_of_a_store() -> None:
    config: dict[str, Any] = {
        "bootstrap_servers": "b:9092",
        "sasl": {"oauth": {"token_url": "https://login:1/token"}},
    }
    found = hosts_of(connector_classes()["kafka"].Config, config)
    assert found == [Host("bootstrap_servers", "b"), Host("sasl.oauth.token_url", "login")]
    assert hosts_of(connector_classes()["kafka"].Config, {"sasl": "x", "bootstrap_servers": 1}) == []


def resolver(known: Mapping[str, Sequence[str] | None]) -> Any:
    def resolve(hosts: Sequence[str]) -> dict[str, Any]:
        found = {host: known.get(host, ()) for host in hosts}
        return {host: tuple(map(ip_address, one)) for host, one in found.items() if one is not None}

    return resolve


def test_a_refusal_says_which_host_has_which_address_and_why() -> None:
    known = {"meta": ["8.8.8.8", "169.254.169.254"], "lan": ["10.0.0.9"], "slow": None, "out": ["8.8.4.4"]}
    guard = Destinations(Networks.read("inside"), resolver(known))
    hosts = [Host("uris", one) for one in ("meta", "lan", "slow", "out", "inside", "unknown")]
    found = guard.refusals(hosts)
    assert [one.passing for one in found] == [False, False, True]
    assert [one.detail.split(". ")[0].removesuffix(".") for one in found] == [
        "uris: meta resolves to 169.254.169.254, an address of a cloud's metadata service",
        "uris: lan resolves to 10.0.0.9, a private address",
        "uris: slow could not be resolved in time",
    ]
    assert "add lan or 10.0.0.9 to LEATSTREAM_ALLOWED_NETWORKS" in found[1].hint
    assert guard.refusals(hosts, names=False) == []


def test_a_name_that_does_not_answer_in_time_is_no_name_without_addresses(monkeypatch: Any) -> None:
    monkeypatch.setattr(destinations, "_resolved", lambda host: () if host == "none" else pytest.fail(host))
    assert addresses_of(["none", "10.0.0.1"]) == {"none": (), "10.0.0.1": (ip_address("10.0.0.1"),)}
    assert addresses_of(["slow"], timeout=-1) == {}
    monkeypatch.undo()
    # The forms that a resolver takes for an address mean what they mean to a client.
    assert addresses_of(["2130706433", "x" * 300]) == {
        "2130706433": (ip_address("127.0.0.1"),),
        "x" * 300: (),
    }
