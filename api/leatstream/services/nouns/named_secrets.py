"""Secrets: named values that stores and schema registries use and nobody reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leatstream.errors import RequestError
from leatstream.model.names import quote
from leatstream.model.objects import Meta, Store, StoreState
from leatstream.model.registered import Secret
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.noun import NounService
from leatstream.services.nouns.secret_values import stored_value
from leatstream.services.nouns.stores import ask_store

KINDS = ("generic_string",)


def put_secret(
    env: Environment,
    principal: Principal,
    name: str,
    value: str | None,
    kind: str = "generic_string",
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Secret]:
    """Create or replace. Stores that use it connect with a new value at once, jobs at their next start.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        value: the secret itself; None keeps the one that is stored.
        kind: ``generic_string``.
        properties: notes beside it, not secret.
        comment: free text.
        pre: precondition.

    Raises:
        RequestError: a new secret without a value, or a kind that is not built.
        CatalogError: preconditions.
    """
    authorize(principal, WRITE, "secret", name)
    if kind not in KINDS:
        raise RequestError(
            "unsupported", "Secrets of this type are not built.", pointer="#/type", hint="Use generic_string."
        )
    with env.open_unit() as unit:
        old = unit.named_secrets.find(name)
        if value is None and old is None:
            raise RequestError("validation", "A new secret needs a value.", pointer="#/value")
        fresh = value is not None and (old is None or stored_value(env, unit, old.reference) != value)

        def make(meta: Meta, previous: Secret | None) -> Secret:
            version = previous.version + fresh if previous else 1
            notes = dict(properties or {})
            return Secret(meta=meta, name=name, kind=kind, version=version, properties=notes, comment=comment)

        stored = upsert(env, principal, unit.named_secrets, name, "secret", "sec", pre, make)
        used: list[Store] = []
        if fresh and value is not None:
            reference = stored.item.reference
            unit.secrets.put(reference, env.secrets.seal(reference, value))
            used = _connect_anew(unit, name)
        unit.commit()
    for store in used:
        ask_store(env, store)
    return stored


def _connect_anew(unit: UnitOfWork, name: str) -> list[Store]:
    changed = []
    for store in unit.unfiltered.stores.page(limit=100_000):
        if name in store.secret_names.values():
            state = StoreState.PENDING
            store = replace(store, secret_changes=store.secret_changes + 1, state=state)
            unit.stores.update(store)
            changed.append(store)
    return changed


def secret_dependents(unit: UnitOfWork, name: str) -> list[str]:
    """Stores and schema registries that use the secret, for messages."""
    stores = [s for s in unit.unfiltered.stores.page(limit=100_000) if name in s.secret_names.values()]
    registries = [
        r for r in unit.unfiltered.schema_registries.page(limit=100_000) if name in r.secret_names.values()
    ]
    found = [f"store {quote(s.name)}" for s in stores]
    return found + [f"schema registry {quote(r.name)}" for r in registries]


def _release(unit: UnitOfWork, secret: Secret) -> None:
    unit.secrets.delete(secret.reference)


SECRETS = NounService(
    "secret",
    "secrets",
    "secrets",
    lambda unit: unit.named_secrets,
    lambda unit, secret: secret_dependents(unit, secret.name),
    _release,
)
get_secret, require_secret = SECRETS.get, SECRETS.require
list_secrets, delete_secret = SECRETS.list, SECRETS.delete
