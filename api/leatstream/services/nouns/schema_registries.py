"""Schema registries: objects that stores name, and how they are reached."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from leatstream.connectors.destinations import hosts_in
from leatstream.errors import Faults, LeatstreamError
from leatstream.formats.registry_client import RegistryAddress, RegistryClient
from leatstream.model.certificates import is_certificate
from leatstream.model.names import quote
from leatstream.model.objects import Meta
from leatstream.model.registered import SchemaRegistry
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Environment, Precondition, Principal, Stored
from leatstream.services.environment.authorization import WRITE, authorize
from leatstream.services.environment.upsert import upsert
from leatstream.services.nouns.noun import NounService
from leatstream.services.nouns.places import refuse_hosts
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

KINDS = ("confluent", "confluent_cloud", "apicurio")
_ADDRESS = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:/[\w./~-]*)?\Z")


def put_registry(
    env: Environment,
    principal: Principal,
    name: str,
    kind: str,
    uris: str,
    username: str | None = None,
    secrets: Mapping[str, SecretValue] | None = None,
    comment: str | None = None,
    pre: Precondition = Precondition(),  # noqa: B008 - immutable
    ca_certificate: str | None = None,
) -> Stored[SchemaRegistry]:
    """Create or replace.

    Args:
        env: the environment.
        principal: who asks.
        name: exact name.
        kind: ``confluent``, ``confluent_cloud`` or ``apicurio``.
        uris: addresses with http:// or https://, joined by commas.
        username: user, or API key.
        secrets: ``password`` to its value or secret; None keeps what is stored.
        comment: free text.
        pre: precondition.
        ca_certificate: PEM of the authority that signed its certificate; None = the system's.

    Raises:
        RequestError: validation with every fault.
        CatalogError: preconditions.
        SecretStoreError: the named secret refers to a secret store that does not give the value.
    """
    authorize(principal, WRITE, "schema registry", name)
    cleaned = without_blanks(uris)
    refuse_hosts(env, "schema_registry", name, hosts_in("uris", cleaned), "#")
    look_ahead(env, (secrets or {}).values())
    with env.open_unit() as unit:
        old = unit.schema_registries.find(name)
        before = old.secrets if old else {}
        if old is not None:
            elsewhere = moved(old, replace(old, uris=cleaned, ca_certificate=ca_certificate))
            refuse_elsewhere(secrets or {}, before, old.secret_names, elsewhere, "#")
        settled = settle(env, unit, secrets or {}, before, old.secret_names if old else {}, "#")
        check_registry(
            kind, cleaned, username, has_password="password" in settled.known, ca_certificate=ca_certificate
        )

        def make(meta: Meta, _: SchemaRegistry | None) -> SchemaRegistry:
            return SchemaRegistry(
                meta=meta,
                name=name,
                kind=kind,
                uris=cleaned,
                username=username,
                secrets=settled.references(meta.id),
                secret_names=dict(settled.names),
                ca_certificate=ca_certificate,
                comment=comment,
            )

        stored = upsert(env, principal, unit.schema_registries, name, "schema registry", "reg", pre, make)
        settled.store(env, unit, stored.item.meta.id, before)
        unit.commit()
    return stored


def without_blanks(uris: str) -> str:
    """Addresses joined by commas and nothing else."""
    return ",".join(part.strip() for part in uris.split(",") if part.strip())


def moved(old: SchemaRegistry, new: SchemaRegistry) -> list[str]:
    """The settings of two versions of a registry that say where its password is sent, and that differ."""
    was, now = ({"uris": one.uris, "ca_certificate": one.ca_certificate} for one in (old, new))
    return moved_settings(was, now, dict.fromkeys(now))


def check_registry(
    kind: str,
    uris: str,
    username: str | None,
    *,
    has_password: bool,
    ca_certificate: str | None = None,
) -> None:
    """Check what is said of a registry; RequestError with every fault, no value is quoted.

    Args:
        kind: of the registry.
        uris: its addresses, joined by commas.
        username: for the login; None = none.
        has_password: whether one is given or kept.
        ca_certificate: PEM of the authority; None = the machine's.
    """
    faults = Faults()
    if kind not in KINDS:
        faults.add("validation", f"'type' must be one of {', '.join(KINDS)}.", pointer="#/type")
    if not uris or not all(_ADDRESS.match(part) for part in uris.split(",")):
        detail = "'uris' are addresses such as https://registry.example.com:8081, joined by commas."
        faults.add(
            "validation", detail, pointer="#/uris", hint="User and password have members of their own."
        )
    if (username is None) != (not has_password):
        given, missing = ("username", "password") if username else ("password", "username")
        faults.add("validation", f"{given} needs {missing}.", pointer=f"#/{missing}")
    if kind == "confluent_cloud" and username is None and not has_password:
        detail = "confluent_cloud needs username and password: the API key and its secret."
        faults.add("validation", detail, pointer="#/username")
    if ca_certificate is not None and not is_certificate(ca_certificate):
        detail = "ca_certificate is the PEM text of a certificate, not a file name."
        faults.add("validation", detail, pointer="#/ca_certificate")
    faults.raise_if_any()


def held_password(unit: UnitOfWork, registry: SchemaRegistry) -> Held | None:
    """What the catalog has of a registry's password, if anything.

    Args:
        unit: an open unit of work.
        registry: whose password it is.
    """
    reference = registry.secrets.get("password")
    return held(unit, reference) if reference is not None else None


def address_of(env: Environment, registry: SchemaRegistry, found: Held | None) -> RegistryAddress:
    """How a registry is reached, its password opened: never to be shown or kept.

    Args:
        env: the environment.
        registry: that is to be reached.
        found: what the catalog has of its password.

    Raises:
        SecretStoreError: a secret store does not give the password.
    """
    password = opened(env, found) if found is not None else None
    return RegistryAddress.of(
        registry.name, registry.kind, registry.uris, registry.username, password, registry.ca_certificate
    )


def open_registry(env: Environment, registry: SchemaRegistry, found: Held | None) -> RegistryClient:
    """A client of the registry, which is not asked yet; a password outside the catalog is read.

    Args:
        env: the environment.
        registry: that is to be reached.
        found: what the catalog has of its password.

    Raises:
        SecretStoreError: a secret store does not give the password.
    """
    return env.open_registry(address_of(env, registry, found), env.settings.store_timeout)


def test_registry(env: Environment, principal: Principal, name: str) -> RegistryStatus:
    """Ask the registry now.

    Args:
        env: the environment.
        principal: who asks.
        name: of the registry.
    """
    authorize(principal, WRITE, "schema registry", name)
    with env.open_unit(write=False) as unit:
        registry = require_registry(unit, name)
        found = held_password(unit, registry)
    try:
        client = open_registry(env, registry, found)
    except LeatstreamError as error:
        return RegistryStatus(False, error.detail, error.code)
    try:
        client.test()
    except LeatstreamError as error:
        return RegistryStatus(False, error.detail, error.code)
    finally:
        client.close()
    return RegistryStatus(True, None, None)


test_registry.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever pytest thinks of the name


@dataclass(frozen=True, slots=True)
class RegistryStatus:
    """Whether a registry answered, and if not, why."""

    ready: bool
    message: str | None
    error_code: str | None


def registry_dependents(unit: UnitOfWork, name: str) -> list[str]:
    """Stores that name the registry, for messages."""
    return [
        f"store {quote(s.name)}"
        for s in unit.unfiltered.stores.page(limit=100_000)
        if s.schema_registry == name
    ]


def _release(unit: UnitOfWork, registry: SchemaRegistry) -> None:
    forget_own(unit, registry.meta.id, registry.secrets)


REGISTRIES = NounService(
    "schema registry",
    "schema registries",
    "schema-registries",
    lambda unit: unit.schema_registries,
    lambda unit, registry: registry_dependents(unit, registry.name),
    _release,
)
get_registry, require_registry = REGISTRIES.get, REGISTRIES.require
list_registries, delete_registry = REGISTRIES.list, REGISTRIES.delete
