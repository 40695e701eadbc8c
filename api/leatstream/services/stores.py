"""Stores: connectivity and access to systems of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from leatstream.connectors.registry import with_secrets
from leatstream.errors import CatalogError, Faults, LeatstreamError, RequestError
from leatstream.model.names import quote
from leatstream.model.objects import Meta, Store, StoreState
from leatstream.ports import UnitOfWork
from leatstream.services.authorization import READ, WRITE, authorize
from leatstream.services.databases import refuse_dependents
from leatstream.services.environment import Environment, Page, Precondition, Principal, Stored
from leatstream.services.pages import repository_page
from leatstream.services.upsert import upsert

_TEST_FIELDS = ("state", "message", "error_code", "checked_at")


def put_store(
    env: Environment,
    principal: Principal,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    secrets: Mapping[str, str | None],
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
) -> Stored[Store]:
    """Create or replace a store, then ask it once; a store that does not answer is kept and says why.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        kind: connector kind.
        config: typed settings without secrets.
        secrets: dotted field path to value; None keeps the value that is stored.
        comment: free text.
        pre: precondition.

    Raises:
        RequestError: ``unsupported`` kind, or ``validation`` with every fault of the settings.
        CatalogError: preconditions; ``requires-replacement`` for another kind.
    """
    authorize(principal, WRITE, "store", name)
    with env.open_unit() as unit:
        old = unit.stores.find(name)
        if old is not None and old.kind != kind:
            raise CatalogError(
                "requires-replacement",
                f"store {quote(name)} is of kind {old.kind}; a store cannot become {kind}",
                pointer=f"#/{kind}",
            )
        kept = _kept_secrets(old, secrets)
        values = {p: v for p, v in secrets.items() if v is not None}
        known = {p: env.secrets.open(r, unit.secrets.find(r) or b"") for p, r in kept.items()}
        check_config(env, kind, config, {**known, **values})
        changed_secret = any(known.get(p) != v for p, v in values.items()) or set(known) != set(
            old.secrets if old else ()
        )

        def make(meta: Meta, previous: Store | None) -> Store:
            references = {p: f"secret://catalog/{meta.id}/{p}" for p in {**known, **values}}
            built = Store(
                meta=meta, name=name, kind=kind, config=dict(config), secrets=references, comment=comment
            )
            if previous is None or changed_secret:
                return built
            return replace(built, **{f: getattr(previous, f) for f in _TEST_FIELDS})

        stored = upsert(env, principal, unit.stores, name, "store", "store", pre, make)
        for path, value in values.items():
            reference = stored.item.secrets[path]
            unit.secrets.put(reference, env.secrets.seal(reference, value))
        for path in set(old.secrets if old else ()) - set(stored.item.secrets):
            unit.secrets.delete(old.secrets[path] if old else "")
        unit.commit()
    if stored.changed or stored.item.state is not StoreState.READY:
        return replace(stored, item=_test(env, stored.item))
    return stored


def update_store(
    env: Environment, principal: Principal, name: str, change: Callable[[Store], dict[str, Any]]
) -> Stored[Store]:
    """Change some settings of a store.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        change: gives the settings after the change; a secret of None stays.

    Raises:
        CatalogError: not-found, or stale when someone else changed the store at the same moment.
    """
    store = get_store(env, principal, name)
    plain, secrets = split_secrets(env, store.kind, change(store))
    pre = Precondition(if_match=store.meta.generation)
    return put_store(env, principal, name, store.kind, plain, secrets, store.comment, pre)


def _kept_secrets(old: Store | None, secrets: Mapping[str, str | None]) -> dict[str, str]:
    """References of stored secrets that the body names without a value."""
    if old is None:
        return {}
    return {p: old.secrets[p] for p, v in secrets.items() if v is None and p in old.secrets}


def check_config(env: Environment, kind: str, config: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Check a kind's settings; RequestError with every fault at once, never quoting a value."""
    connector_class = env.connector_classes.get(kind)
    if connector_class is None:
        offer = ", ".join(sorted(env.connector_classes))
        raise RequestError(
            "unsupported",
            f"stores of kind {kind} are not built yet; available: {offer}",
            pointer=f"#/{kind}",
        )
    try:
        connector_class.Config.model_validate(with_secrets(config, secrets))
    except ValidationError as error:
        faults = Faults()
        for item in error.errors(include_input=False, include_url=False, include_context=False):
            path = "/".join(str(part) for part in item["loc"])
            faults.add("validation", item["msg"], pointer=f"#/{kind}/{path}".rstrip("/"))
        faults.raise_if_any()


def split_secrets(
    env: Environment, kind: str, config: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Part a store's settings into plain ones and secret values by dotted path."""
    plain = {k: dict(v) if isinstance(v, Mapping) else v for k, v in config.items()}
    secrets: dict[str, str | None] = {}
    connector_class = env.connector_classes.get(kind)
    for path in connector_class.secret_fields() if connector_class else ():
        *parents, leaf = path.split(".")
        place: Any = plain
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if isinstance(place, dict) and leaf in place:
            secrets[path] = place.pop(leaf)
    return plain, secrets


def resolve_store_secrets(env: Environment, unit: UnitOfWork, store: Store) -> dict[str, str]:
    """Dotted path to value of a store's secrets."""
    values: dict[str, str] = {}
    for path, reference in store.secrets.items():
        envelope = unit.secrets.find(reference)
        if envelope is not None:
            values[path] = env.secrets.open(reference, envelope)
    return values


def test_store(env: Environment, principal: Principal, name: str) -> Store:
    """Ask the store now and return it with its new status."""
    authorize(principal, WRITE, "store", name)
    return _test(env, get_store(env, principal, name))


test_store.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever pytest thinks of the name


def _test(env: Environment, store: Store) -> Store:
    state, message, code = StoreState.READY, None, None
    try:
        env.connect(store).test(env.settings.store_timeout)
    except LeatstreamError as error:
        state, message, code = StoreState.ERRORED, error.detail, error.code
    with env.open_unit() as unit:
        current = unit.stores.find_by_id(store.meta.id)
        if current is None or current.meta.generation != store.meta.generation:
            return store
        tested = replace(current, state=state, message=message, error_code=code, checked_at=env.clock.now())
        unit.stores.update(tested)
        unit.commit()
    env.changed.notify()
    return tested


def get_store(env: Environment, principal: Principal, name: str) -> Store:
    """The store; CatalogError not-found."""
    authorize(principal, READ, "store", name)
    with env.open_unit(write=False) as unit:
        return require_store(unit, name)


def require_store(unit: UnitOfWork, name: str) -> Store:
    """The store inside a unit; CatalogError not-found."""
    found = unit.stores.find(name)
    if found is None:
        raise CatalogError("not-found", f"store {quote(name)} does not exist", sqlstate="3D006")
    return found


def list_stores(
    env: Environment, principal: Principal, page_size: int = 100, page_token: str | None = None
) -> Page[Store]:
    """One page of stores by name."""
    authorize(principal, READ, "stores")
    with env.open_unit(write=False) as unit:
        return repository_page(unit.stores, lambda s: s.name, "stores", page_size, page_token)


def delete_store(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008
) -> None:
    """Delete a store that no relation uses; its secrets go with it, the user's data stays."""
    authorize(principal, WRITE, "store", name)
    with env.open_unit() as unit:
        store = require_store(unit, name)
        pre.check(store.meta.generation, "store", name)
        used = [r for r in unit.relations.page(limit=100_000) if r.store == name]
        refuse_dependents(f"store {quote(name)}", [f"stream {r.fqn}" for r in used])
        for reference in store.secrets.values():
            unit.secrets.delete(reference)
        unit.stores.delete(store.meta.id)
        unit.commit()
