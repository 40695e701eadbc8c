"""Connectors and registry clients that are kept open, for places that the server may connect to."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.errors import SecretStoreError, StoreError
from leatstream.formats.registry_client import RegistryAddress, RegistryClient
from leatstream.model.objects import Store
from leatstream.services.environment import Environment
from leatstream.services.nouns.places import require_registry_allowed, require_store_allowed
from leatstream.services.nouns.secret_values import Held
from leatstream.services.nouns.stores import held_store_secrets, open_store_secrets


@dataclass(frozen=True, slots=True)
class _Open:
    """A connector that is kept.

    Attributes:
        checked: when its addresses were looked at last.
        outside: digest of its values from secret stores; None if it has none.
    """

    connector: Connector
    checked: float
    outside: bytes | None


class StoreConnections:
    """Connectors by store version, so that their clients are opened once."""

    def __init__(self, env: Callable[[], Environment], recheck: float = 30.0) -> None:
        """Open nothing yet.

        Args:
            env: gives the environment, which is made later.
            recheck: seconds after which the addresses of an open connector, and its values from secret
                stores, are looked at again.
        """
        self._env, self._recheck = env, recheck
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int, int], _Open] = {}

    def __call__(self, store: Store) -> Connector:
        """The connector of a store, secrets resolved.

        Raises:
            StoreError: address-refused, one of its hosts has an address to which the server may not connect;
                store-unreachable, the name service did not answer, and no connector is open yet.
            SecretStoreError: a secret store does not give a value, and no connector is open yet.
        """
        env = self._env()
        key = (store.meta.id, store.meta.generation, store.secret_changes)
        with self._lock:
            kept = self._open.get(key)
        if kept is not None and time.monotonic() - kept.checked < self._recheck:
            return kept.connector
        try:
            require_store_allowed(env, store)
        except StoreError as error:
            # An open connection works without the name service.
            if kept is None or error.code == "address-refused":
                raise
        if kept is not None and not _is_rotated(env, store, kept.outside):
            self._keep(key, kept.connector, kept.outside)
            return kept.connector
        with env.open_unit(write=False) as unit:
            held = held_store_secrets(unit, store)
            there = {one.meta.id for one in unit.stores.page(limit=100_000)}
        secrets = open_store_secrets(env, held)
        connector = open_connector(store.kind, store.name, store.config, secrets)
        if store.meta.generation:
            with self._lock:
                # Clients have threads and connections: those of dropped stores go as well.
                for old in [k for k in self._open if k[0] == store.meta.id or k[0] not in there]:
                    del self._open[old]
            self._keep(key, connector, _digest(held, secrets))
        return connector

    def _keep(self, key: tuple[str, int, int], connector: Connector, outside: bytes | None) -> None:
        with self._lock:
            self._open[key] = _Open(connector, time.monotonic(), outside)


def _is_rotated(env: Environment, store: Store, outside: bytes | None) -> bool:
    """Whether a secret store has other values now; one that does not answer leaves a connection alone."""
    if outside is None:
        return False
    with env.open_unit(write=False) as unit:
        held = held_store_secrets(unit, store)
    try:
        return _digest(held, open_store_secrets(env, held)) != outside
    except SecretStoreError:
        return False


def _digest(held: Mapping[str, Held], values: Mapping[str, str]) -> bytes | None:
    outside = {path: values[path] for path, one in sorted(held.items()) if one.outside is not None}
    return hashlib.sha256(repr(outside).encode()).digest() if outside else None


def open_registry(env: Environment, address: RegistryAddress, seconds: float) -> RegistryClient:
    """A client of a schema registry to which the server may connect.

    Args:
        env: the environment.
        address: of the registry.
        seconds: that a call may take.

    Raises:
        StoreError: address-refused; registry-unreachable, the name service did not answer.
    """
    require_registry_allowed(env, address)
    return RegistryClient(address, seconds)
