"""Secrets: named values that stores and schema registries use and nobody reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leatstream.errors import RequestError
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.model.objects import Meta, Store, StoreState
from leatstream.model.registered import Secret
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.authorization import WRITE, authorize, require
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
    reference: str | None = None,
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
        reference: to a secret store that holds the value, in place of one; it is looked up once.

    Raises:
        RequestError: a new secret without a value, or a kind that is not built; an invalid reference, or one
            that the operator does not permit.
        AccessError: a new reference without the privilege.
        CatalogError: preconditions.
        SecretStoreError: the secret store does not give the value.
    """
    authorize(principal, WRITE, "secret", name)
    if kind not in KINDS:
        raise RequestError(
            "unsupported", "Secrets of this type are not built.", pointer="#/type", hint="Use generic_string."
        )
    if reference is not None:
        if value is not None:
            raise RequestError("validation", "Give value or reference, not both.", pointer="#/reference")
        check_reference(env, principal, name, reference)
    with env.open_unit() as unit:
        old = unit.named_secrets.find(name)
        fresh = _is_new(env, unit, old, value, reference)

        def make(meta: Meta, previous: Secret | None) -> Secret:
            return Secret(
                meta=meta,
                name=name,
                kind=kind,
                version=previous.version + fresh if previous else 1,
                properties=dict(properties or {}),
                comment=comment,
                outside=reference,
            )

        stored = upsert(env, principal, unit.named_secrets, name, "secret", "sec", pre, make)
        used: list[Store] = []
        if fresh:
            sealed = stored.item.reference
            if value is not None:
                unit.secrets.put(sealed, env.secrets.seal(sealed, value))
            else:
                unit.secrets.delete(sealed)
            used = connect_again(unit, name)
        unit.commit()
    for store in used:
        ask_store(env, store)
    return stored


def check_reference(env: Environment, principal: Principal, name: str, reference: str) -> None:
    """Whether a secret may refer to this, and whether the secret store gives a value.

    The reference that the secret already has is not checked again.

    Args:
        env: the environment.
        principal: who makes or changes the secret.
        name: of the secret.
        reference: as the user wrote it.

    Raises:
        AccessError: the server's rights at the secret store need a privilege.
        RequestError: it is no reference, or the operator does not permit it.
        SecretStoreError: the secret store does not give the value.
    """
    with env.open_unit(write=False) as unit:
        old = unit.named_secrets.find(name)
    if old is not None and old.outside == reference:
        return
    doing = "make a secret that refers to a secret store, which the server reads with rights of its own"
    require(principal, Privilege.USE_MACHINE_CREDENTIALS, doing)
    env.outside.permitted(reference, "#/reference")
    env.outside.value(reference, fresh=True)


def _is_new(
    env: Environment, unit: UnitOfWork, old: Secret | None, value: str | None, reference: str | None
) -> bool:
    """Whether the secret gets another value; RequestError validation if it would have none."""
    if value is None and reference is None and (old is None or old.outside is not None):
        which = "A new secret" if old is None else "A secret whose reference is removed"
        raise RequestError("validation", f"{which} needs a value, or a reference.", pointer="#/value")
    if old is None:
        return True
    if reference is not None or old.outside is not None:
        return old.outside != reference
    return value is not None and stored_value(env, unit, old.reference) != value


def connect_again(unit: UnitOfWork, name: str) -> list[Store]:
    """Note that the stores which use a secret are to be connected again, and return them.

    Args:
        unit: an open unit of work; the caller commits, and asks each store.
        name: of the secret.
    """
    changed = []
    for store in stores_with(unit, name):
        state = StoreState.PENDING
        store = replace(store, secret_changes=store.secret_changes + 1, state=state)
        unit.stores.update(store)
        changed.append(store)
    return changed


def stores_with(unit: UnitOfWork, name: str) -> list[Store]:
    """The stores that use a secret, also those that the caller does not see."""
    return [s for s in unit.unfiltered.stores.page(limit=100_000) if name in s.secret_names.values()]


def secret_dependents(unit: UnitOfWork, name: str) -> list[str]:
    """Stores and schema registries that use the secret, for messages."""
    stores = stores_with(unit, name)
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
