"""Which addresses a server may connect to for its users: what ``LEATSTREAM_ALLOWED_NETWORKS`` says."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Self

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ANY = "*"
_NAME = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?\Z")
_WORDS: dict[str, tuple[str, ...]] = {
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
    "loopback": ("127.0.0.0/8", "::1/128"),
}
# They give the machine's credentials to any process that asks. Some are private or public by their range.
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
        ),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Networks:
    """Addresses that are allowed beside the public ones.

    Attributes:
        networks: allowed ranges.
        names: allowed hosts, exact or as ``*.suffix``, wherever they are.
        everywhere: whether every address is allowed.
    """

    networks: tuple[Network, ...] = ()
    names: tuple[str, ...] = ()
    everywhere: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """From a list that is joined by commas.

        Raises:
            ValueError: what cannot be read.
        """
        networks: list[Network] = []
        names: list[str] = []
        entries = [part.strip().lower().rstrip(".") for part in text.split(",") if part.strip()]
        for entry in entries:
            found = _networks(entry)
            if found is not None:
                networks += found
            elif entry != _ANY and not _is_name(entry):
                raise ValueError(
                    f"{entry} is not a network such as 10.0.0.0/8, an address, a host name, *.example.com, "
                    f"{', '.join(_WORDS)} or {_ANY}"
                )
            elif entry != _ANY:
                names.append(entry)
        return cls(tuple(networks), tuple(names), everywhere=_ANY in entries)

    def has_name(self, host: str) -> bool:
        """Whether a host is allowed by its name."""
        name = host.lower().rstrip(".")
        return any(name.endswith(one[1:]) if one.startswith("*.") else name == one for one in self.names)

    def fault(self, address: Address) -> str | None:
        """What an address is that is not allowed, such as ``a private address``; None if it is allowed."""
        meant = _meant(address)
        if self.everywhere:
            return None
        if meant in _METADATA:
            exact = ipaddress.ip_network(meant)
            return None if exact in self.networks else "an address of a cloud's metadata service"
        if any(meant in network for network in self.networks):
            return None
        return _range(meant)


EVERYWHERE = Networks(everywhere=True)


def _networks(entry: str) -> list[Network] | None:
    if entry in _WORDS:
        return [ipaddress.ip_network(one) for one in _WORDS[entry]]
    try:
        return [ipaddress.ip_network(entry, strict=False)]
    except ValueError:
        return None


def _is_name(entry: str) -> bool:
    # What has digits and dots only is an address with a typing error.
    return _NAME.match(entry) is not None and not re.fullmatch(r"[0-9.]+", entry)


def _meant(address: Address) -> Address:
    """The address of IPv4 that an address of IPv6 leads to, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


def _range(address: Address) -> str | None:
    if address.is_loopback or address.is_unspecified:
        return "an address of the server itself"
    if address.is_link_local:
        return "a link-local address"
    if any(address in ipaddress.ip_network(one) for one in _WORDS["private"]):
        return "a private address"
    public = address.is_global and not (address.is_multicast or address.is_reserved)
    return None if public else "not a public address"
