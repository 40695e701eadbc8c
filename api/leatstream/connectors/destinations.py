"""Where stores and schema registries are reached, and whether the server may connect there."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from leatstream.connectors.settings import Connects, settings_of
from leatstream.model.networks import EVERYWHERE, Address, Networks

SETTING = "LEATSTREAM_ALLOWED_NETWORKS"
_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Host:
    """A host that a setting names.

    Attributes:
        setting: dotted path of the setting.
        name: of the host, or its address.
    """

    setting: str
    name: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A host that the server may not connect to.

    Attributes:
        setting: dotted path of the setting that names it.
        detail: which host, which address, why.
        hint: how it can be allowed.
        passing: whether it may be allowed soon: nobody could say in time what its address is.
    """

    setting: str
    detail: str
    hint: str
    passing: bool = False


def hosts_in(setting: str, value: str) -> list[Host]:
    """The hosts of a setting's value: a host, ``host:port`` or URL, or several joined by commas.

    Args:
        setting: dotted path of the setting.
        value: its value.
    """
    parts = [part.strip() for part in value.split(",") if part.strip()]
    return [Host(setting, host) for host in map(_host, parts) if host]


def hosts_of(model: type[BaseModel], config: Mapping[str, Any]) -> list[Host]:
    """The hosts that the settings of a store name.

    Args:
        model: the settings of the kind.
        config: those of the store; they need not be valid.
    """
    found: list[Host] = []
    for one in settings_of(model):
        value: Any = config if one.find(Connects) else None
        for part in one.path:
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, str):
            found += hosts_in(one.dotted, value)
    return found


def addresses_of(hosts: Sequence[str], timeout: float = _SECONDS) -> dict[str, tuple[Address, ...]]:
    """The addresses of each host: empty if there is none of the name, missing if nobody answered in time.

    Args:
        hosts: names and addresses.
        timeout: seconds for all of them.
    """
    found: dict[str, tuple[Address, ...]] = {}
    end = time.monotonic() + timeout

    def ask() -> None:
        for host in names:
            if time.monotonic() < end:
                found[host] = _resolved(host)

    for host in hosts:
        literal = _literal(host)
        if literal is not None:
            found[host] = (literal,)
    names = [host for host in hosts if host not in found]
    if names:
        # The resolver has a timeout of its own, which is longer.
        asking = threading.Thread(target=ask, daemon=True, name="resolve")
        asking.start()
        asking.join(timeout)
    return dict(found)


@dataclass(frozen=True, slots=True)
class Destinations:
    """What the server may connect to.

    Attributes:
        networks: what is allowed.
        resolve: gives the addresses of hosts.
    """

    networks: Networks = field(default=EVERYWHERE)
    resolve: Callable[[Sequence[str]], Mapping[str, tuple[Address, ...]]] = addresses_of

    def refusals(self, hosts: Iterable[Host], *, names: bool = True) -> list[Refusal]:
        """Which hosts the server may not connect to. Unknown names are none of them: nobody reaches those.

        Args:
            hosts: that settings name.
            names: whether to resolve names; else only addresses are looked at.
        """
        if self.networks.everywhere:
            return []
        asked = [one for one in hosts if not self.networks.has_name(one.name)]
        if not names:
            asked = [one for one in asked if _literal(one.name) is not None]
        found = self.resolve(list(dict.fromkeys(one.name for one in asked)))
        judged = ((one, self._fault(one.name, found.get(one.name))) for one in asked)
        return [
            _refusal(one, *fault, passing=one.name not in found) for one, fault in judged if fault is not None
        ]

    def _fault(self, host: str, addresses: Sequence[Address] | None) -> tuple[str, str] | None:
        """What is wrong with a host, and what may be added to the setting."""
        if addresses is None:
            return f"{host} could not be resolved in time", host
        for address in addresses:
            fault, shown = self.networks.fault(address), str(address)
            if fault is not None:
                itself = shown == host
                what = f"{shown} is {fault}" if itself else f"{host} resolves to {shown}, {fault}"
                return what, shown if itself else f"{host} or {shown}"
        return None


def _refusal(host: Host, fault: str, entries: str, *, passing: bool) -> Refusal:
    if passing:
        hint = f"Try again when the name service answers, or add {entries} to {SETTING} of the server."
        return Refusal(host.setting, f"{host.setting}: {fault}.", hint, passing)
    hint = f"Choose another address, or add {entries} to {SETTING} of the server."
    return Refusal(host.setting, f"{host.setting}: {fault}. This server may not connect there.", hint)


def _host(part: str) -> str:
    if _literal(part.strip("[]")) is not None:
        return part.strip("[]")
    try:
        return urlsplit(part if "://" in part else f"//{part}").hostname or ""
    except ValueError:
        return ""


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _resolved(host: str) -> tuple[Address, ...]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(ipaddress.ip_address(str(one[4][0])) for one in found))
