"""Stores: connectivity and access to systems of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from leatstream.connectors.registry import with_secrets
from leatstream.errors import (
    MISSING,
    CatalogError,
    Faults,
    LeatstreamError,
    RequestError,
    SecretStoreError,
    sentence,
)
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.model.objects import Meta, Store, StoreState
from leatstream.model.registered import SecretName
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.authorization import WRITE, authorize, require
from leatstream.services.environment.desk import desk_of
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.external_ids import with_generated
from leatstream.services.nouns.noun import NounService
from leatstream.services.nouns.places import add_refusals, refuse_hosts, store_hosts
from leatstream.services.nouns.secret_values import (
    Held,
    SecretValue,
    forget_own,
    held,
    look_ahead,
    moved_settings,
    opened,
    refuse_elsewhere,
    settle,
)

_REFUSED_LOGIN = ("store-auth-failed", "registry-auth-failed")
_TEST_FIELDS = ("state", "message", "error_code", "server", "checked_at")


def put_store(
    env: Environment,
    principal: Principal,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    secrets: Mapping[str, SecretValue],
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
    schema_registry: str | None = None,
) -> Stored[Store]:
    """Create or replace a store, then ask it once; a store that does not answer is kept and says why.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        kind: connector kind.
        config: typed settings without secrets.
        secrets: dotted field path to value, or to the name of a secret; None keeps the value that is stored.
        comment: free text.
        pre: precondition.
        schema_registry: name of the registry that describes its records.

    Raises:
        RequestError: ``unsupported`` kind, or ``validation`` with every fault of the settings.
        CatalogError: preconditions; ``requires-replacement`` for another kind.
        SecretStoreError: a named secret refers to a secret store that does not give the value.
    """
    authorize(principal, WRITE, "store", name)
    refuse_hosts(env, "store", name, store_hosts(env, kind, config), f"#/{kind}")
    look_ahead(env, secrets.values())
    with env.open_unit() as unit:
        old = unit.stores.find(name)
        # Before its settings: what is wrong with them may follow from what somebody else has changed.
        pre.check(old.meta.generation if old else None, "store", name)
        if old is not None and old.kind != kind:
            raise CatalogError(
                "requires-replacement",
                f"Store {quote(name)} is of kind {old.kind}; a store cannot become {kind}.",
                pointer=f"#/{kind}",
            )
        before = old.secrets if old else {}
        if old is not None:
            refuse_moved_secrets(env, old, config, secrets)
        config = with_generated(kind, config, old)
        settled = settle(env, unit, secrets, before, old.secret_names if old else {}, f"#/{kind}")
        check_config(env, kind, config, settled.known)
        if old is None or settled.changed or dict(old.config) != dict(config):
            require_credentials(env, principal, kind, config)
        require_registry_of(unit, schema_registry)

        def make(meta: Meta, previous: Store | None) -> Store:
            built = Store(
                meta=meta,
                name=name,
                kind=kind,
                config=dict(config),
                secrets=settled.references(meta.id),
                secret_names=dict(settled.names),
                secret_changes=previous.secret_changes if previous else 0,
                schema_registry=schema_registry,
                comment=comment,
            )
            if previous is None or settled.changed:
                return built
            return replace(built, **{f: getattr(previous, f) for f in _TEST_FIELDS})

        stored = upsert(env, principal, unit.stores, name, "store", "store", pre, make)
        settled.store(env, unit, stored.item.meta.id, before)
        unit.commit()
    if stored.changed or stored.item.state is not StoreState.READY:
        return replace(stored, item=ask_store(env, stored.item))
    return stored


def require_registry_of(unit: UnitOfWork, name: str | None) -> None:
    """RequestError if a schema registry that a store names does not exist, AccessError without USAGE."""
    if name is None:
        return
    found, desk = unit.schema_registries.find(name), desk_of(unit)
    if found is not None and desk is not None:
        desk.require((Privilege.USAGE, "schema_registry", quote(name), found.meta.owner))
    if found is None:
        raise RequestError(
            "validation",
            f"Schema registry {quote(name)} does not exist.",
            pointer="#/schema_registry",
            hint="CREATE SCHEMA_REGISTRY first",
            sqlstate=MISSING["schema registry"],
        )


def update_store(
    env: Environment,
    principal: Principal,
    name: str,
    change: Callable[[Store], dict[str, Any]],
    schema_registry: str | None = None,
) -> Stored[Store]:
    """Change some settings of a store.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        change: gives the settings after the change; a secret of None stays.
        schema_registry: another registry; None = the one it has.

    Raises:
        CatalogError: not-found, or stale when someone else changed the store at the same moment.
    """
    store = get_store(env, principal, name)
    plain, secrets = split_secrets(env, store.kind, change(store))
    pre = Precondition(if_match=store.meta.generation)
    kept = schema_registry or store.schema_registry
    return put_store(env, principal, name, store.kind, plain, secrets, store.comment, pre, kept)


def check_config(env: Environment, kind: str, config: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Check a kind's settings; RequestError with every fault at once, never quoting a value.

    Args:
        env: the environment.
        kind: of the store.
        config: its plain settings.
        secrets: values by dotted path.
    """
    connector_class = env.connector_classes.get(kind)
    if connector_class is None:
        offer = ", ".join(sorted(env.connector_classes))
        raise RequestError(
            "unsupported",
            f"Stores of kind {kind} are not built yet; available: {offer}.",
            pointer=f"#/{kind}",
        )
    faults = Faults()
    try:
        connector_class.Config.model_validate(with_secrets(config, secrets))
    except ValidationError as error:
        for item in error.errors(include_input=False, include_url=False, include_context=False):
            path = [str(part) for part in item["loc"]]
            # A plan shows the sentence alone, without the pointer.
            member = f"{'.'.join(path)}: " if path else ""
            detail = sentence(f"{member}{item['msg'].removeprefix('Value error, ')}")
            faults.add("validation", detail, pointer="/".join(["#", kind, *path]))
    add_refusals(env, faults, store_hosts(env, kind, config), f"#/{kind}")
    faults.raise_if_any()


def require_credentials(env: Environment, principal: Principal, kind: str, config: Mapping[str, Any]) -> None:
    """AccessError if a store needs the machine's credentials, and the principal may not use them.

    Args:
        env: the environment.
        principal: who makes or changes the store.
        kind: of the store.
        config: its settings.
    """
    connector_class = env.connector_classes.get(kind)
    if connector_class is not None and connector_class.Config.takes_machine_credentials(config):
        doing = "make a store without credentials of its own, which would use those of the server's machine"
        require(principal, Privilege.USE_MACHINE_CREDENTIALS, doing)


def refuse_moved_secrets(
    env: Environment, old: Store, config: Mapping[str, Any], secrets: Mapping[str, SecretValue]
) -> None:
    """Refuse to send a secret that is stored to another place than the one it was given for.

    Args:
        env: the environment.
        old: the store as it is.
        config: its settings to be.
        secrets: the new values by dotted path.
    """
    connector_class = env.connector_classes.get(old.kind)
    addresses = connector_class.secret_addresses() if connector_class else {}
    moved = moved_settings(old.config, config, addresses)
    refuse_elsewhere(secrets, old.secrets, old.secret_names, moved, f"#/{old.kind}")


def split_secrets(
    env: Environment, kind: str, config: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, SecretValue]]:
    """Part a store's settings into plain ones and secret values by dotted path.

    Args:
        env: the environment.
        kind: of the store.
        config: its settings, secrets among them.
    """
    plain = with_secrets(config, {})
    secrets: dict[str, SecretValue] = {}
    connector_class = env.connector_classes.get(kind)
    for path in connector_class.secret_fields() if connector_class else ():
        *parents, leaf = path.split(".")
        place: Any = plain
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            continue
        named = place.pop(f"{leaf}_secret", None)
        if named is not None:
            secrets[path] = SecretName(named)
        elif leaf in place:
            secrets[path] = place.pop(leaf)
    return plain, secrets


def resolve_store_secrets(env: Environment, unit: UnitOfWork, store: Store) -> dict[str, str]:
    """Dotted path to value of a store's secrets.

    Args:
        env: the environment.
        unit: an open unit of work.
        store: whose secrets they are.
    """
    return open_store_secrets(env, held_store_secrets(unit, store))


def held_store_secrets(unit: UnitOfWork, store: Store) -> dict[str, Held]:
    """Dotted path to what the catalog has of a store's secrets.

    Args:
        unit: an open unit of work.
        store: whose secrets they are.
    """
    found = {path: held(unit, reference) for path, reference in store.secrets.items()}
    return {path: one for path, one in found.items() if one is not None}


def open_store_secrets(env: Environment, found: Mapping[str, Held]) -> dict[str, str]:
    """Dotted path to value; those outside are read there.

    Args:
        env: the environment.
        found: what the catalog has of them.

    Raises:
        SecretStoreError: a secret store does not give one.
    """
    return {path: opened(env, one) for path, one in found.items()}


def test_store(env: Environment, principal: Principal, name: str) -> Store:
    """Ask the store now and return it with its new status.

    Args:
        env: the environment.
        principal: who asks.
        name: of the store.
    """
    authorize(principal, WRITE, "store", name)
    return ask_store(env, get_store(env, principal, name))


test_store.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever pytest thinks of the name


def ask_store(env: Environment, store: Store) -> Store:
    """Ask the store, store the outcome, and return the store with it."""
    answer = _asked(env, store)
    if answer.code in _REFUSED_LOGIN:
        renewed = _renewed(env, store)
        if renewed is not None:
            store, answer = renewed, _asked(env, renewed)
    state, message, code, server = answer.state, answer.message, answer.code, answer.server
    with env.open_unit() as unit:
        # Users who change a secret need not see the stores that use it.
        current = unit.unfiltered.stores.find_by_id(store.meta.id)
        now = (store.meta.generation, store.secret_changes)
        if current is None or (current.meta.generation, current.secret_changes) != now:
            return store
        tested = replace(
            current,
            state=state,
            message=message,
            error_code=code,
            server=dict(server),
            checked_at=env.clock.now(),
        )
        unit.unfiltered.stores.update(tested)
        unit.commit()
    env.changed.notify()
    return tested


@dataclass(frozen=True, slots=True)
class _Answer:
    """The outcome of a test of a store."""

    state: StoreState
    message: str | None = None
    code: str | None = None
    server: Mapping[str, str] = field(default_factory=dict)


def _asked(env: Environment, store: Store) -> _Answer:
    try:
        connector = env.connect(store)
        connector.test(env.settings.store_timeout)
        server = connector.about(env.settings.store_timeout)
    except LeatstreamError as error:
        return _Answer(StoreState.ERRORED, error.detail, error.code)
    return _Answer(StoreState.READY, server=dict(server))


def _renewed(env: Environment, store: Store) -> Store | None:
    """The store, to be connected again with the present values outside the catalog; None if it has none."""
    with env.open_unit(write=False) as unit:
        outside = [one.outside for one in held_store_secrets(unit, store).values() if one.outside is not None]
    try:
        for one in outside:
            env.outside.value(one, fresh=True)
    except SecretStoreError:
        return None  # the store's own answer says more
    return reconnect(env, store) if outside else None


def reconnect(env: Environment, store: Store) -> Store | None:
    """Let every server connect to the store again; None if it has changed meanwhile.

    Args:
        env: the environment.
        store: as it was read.
    """
    with env.open_unit() as unit:
        current = unit.unfiltered.stores.find_by_id(store.meta.id)
        if current is None or current.meta.generation != store.meta.generation:
            return None
        current = replace(current, secret_changes=current.secret_changes + 1)
        unit.unfiltered.stores.update(current)
        unit.commit()
    return current


def _dependents(unit: UnitOfWork, store: Store) -> list[str]:
    return [f"stream {r.fqn}" for r in unit.unfiltered.relations.page(limit=100_000) if r.store == store.name]


def _release(unit: UnitOfWork, store: Store) -> None:
    forget_own(unit, store.meta.id, store.secrets)


STORES = NounService(
    "store",
    "stores",
    "stores",
    lambda unit: unit.stores,
    _dependents,
    _release,
    lambda store: {"kind": store.kind, "state": store.state},
)
get_store, require_store = STORES.get, STORES.require
list_stores, delete_store = STORES.list, STORES.delete
