"""Where users let the server connect to: whether they may, and whether the server does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leatstream.connectors.destinations import Host, hosts_in, hosts_of
from leatstream.errors import AccessError, Faults, StoreError, sentence
from leatstream.formats.registry_client import RegistryAddress
from leatstream.model.access import CREATE_ON, ORGANIZATION, Privilege
from leatstream.model.names import quote
from leatstream.model.objects import Store
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.desk import desk_of, object_of


def authorize_place(env: Environment, unit: UnitOfWork, kind: str, name: str) -> None:
    """AccessError unless who planned a store or registry may make it.

    To plan with it is to connect to it: to an address that the caller chose, with secrets that the caller
    need not know.

    Args:
        env: the environment, of the caller.
        unit: an open unit, of the caller.
        kind: ``store`` or ``schema_registry``.
        name: of the object.
    """
    authorize(env.caller, WRITE, kind.replace("_", " "), name)
    desk, found = desk_of(unit), object_of(unit, kind, quote(name))
    if desk is not None and found is not None and found.meta.generation > 0:
        desk.require((Privilege.MODIFY, kind, quote(name), found.meta.owner))
    elif desk is not None:
        desk.require((CREATE_ON[kind], ORGANIZATION, "", None))


def store_hosts(env: Environment, kind: str, config: Mapping[str, Any]) -> list[Host]:
    """The hosts that a store's settings name; none for a kind that is not built.

    Args:
        env: the environment.
        kind: of the store.
        config: its settings.
    """
    connector_class = env.connector_classes.get(kind)
    return hosts_of(connector_class.Config, config) if connector_class is not None else []


def refuse_hosts(env: Environment, kind: str, name: str, hosts: Iterable[Host], pointer: str) -> None:
    """Refuse settings that name a host to which the server may not connect.

    Names are resolved only for callers who may let the server connect: to others the answer would show the
    server's network. Not to be called in a unit that writes, which others wait for.

    Args:
        env: the environment, of the caller.
        kind: ``store`` or ``schema_registry``.
        name: of the object.
        hosts: that its settings name.
        pointer: of the settings in a request body, such as ``#/kafka``.

    Raises:
        RequestError: validation, for each of these hosts.
    """
    if env.destinations.networks.everywhere:
        return
    try:
        with env.open_unit(write=False) as unit:
            authorize_place(env, unit, kind, name)
    except AccessError:
        names = False
    else:
        names = True
    faults = Faults()
    add_refusals(env, faults, hosts, pointer, names=names)
    faults.raise_if_any()


def add_refusals(
    env: Environment, faults: Faults, hosts: Iterable[Host], pointer: str, *, names: bool = False
) -> None:
    """Note each host to which the server may not connect.

    Args:
        env: the environment.
        faults: receives them.
        hosts: that settings name.
        pointer: of the settings in a request body.
        names: whether to resolve names, which takes a while; else only addresses are looked at.
    """
    for one in env.destinations.refusals(hosts, names=names):
        place = "/".join([pointer, *one.setting.split(".")])
        faults.add("validation", one.detail, pointer=place, hint=one.hint)


def require_store_allowed(env: Environment, store: Store) -> None:
    """Check that the server may connect to a store, as its names resolve now.

    Raises:
        StoreError: address-refused; store-unreachable if the name service did not answer in time.
    """
    hosts = store_hosts(env, store.kind, store.config)
    _require(env, f"store {quote(store.name)}", hosts, "store-unreachable")


def require_registry_allowed(env: Environment, address: RegistryAddress) -> None:
    """Check that the server may connect to a schema registry.

    Raises:
        StoreError: address-refused; registry-unreachable if the name service did not answer in time.
    """
    hosts = [host for uri in address.uris for host in hosts_in("uris", uri)]
    _require(env, f"schema registry {quote(address.name)}", hosts, "registry-unreachable")


def _require(env: Environment, what: str, hosts: Iterable[Host], unreachable: str) -> None:
    refused = env.destinations.refusals(hosts)
    if refused:
        details = " ".join(one.detail for one in refused)
        text = sentence(f"No connection to {what}: {details}")
        # A name service that is away for a moment must not end queries.
        passing = all(one.passing for one in refused)
        raise StoreError(unreachable if passing else "address-refused", text, hint=refused[0].hint)
