"""What a schema registry holds: its subjects, their versions and schemas, read live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from leatstream.errors import not_found
from leatstream.formats.registry_client import RegistryClient, Version
from leatstream.model.access import Privilege
from leatstream.model.names import quote
from leatstream.services.environment import Environment, Page, Principal
from leatstream.services.environment.authorization import READ, authorize
from leatstream.services.environment.desk import desk_of
from leatstream.services.environment.pages import ANY, Only, make_page
from leatstream.services.nouns.schema_registries import held_password, open_registry, require_registry

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject of a registry."""

    name: str


def list_subjects(
    env: Environment,
    principal: Principal,
    registry: str,
    page_size: int = 100,
    page_token: str | None = None,
    only: Only = ANY,
) -> Page[Subject]:
    """One page of a registry's subjects by name.

    Args:
        env: the environment.
        principal: who asks.
        registry: its name.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.
        only: what the list is narrowed to.

    Raises:
        CatalogError: not-found.
        AccessError: permission-denied.
        StoreError: registry-unreachable, registry-auth-failed or registry-rejected.
    """
    found = _ask(env, principal, registry, lambda client: client.subjects())
    return make_page(
        lambda after, limit: [Subject(name) for name in found if name > after][:limit],
        lambda subject: subject.name,
        f"subjects/{registry}",
        page_size,
        page_token,
        only,
    )


def list_versions(
    env: Environment,
    principal: Principal,
    registry: str,
    subject: str,
    page_size: int = 100,
    page_token: str | None = None,
) -> Page[int]:
    """One page of the numbers of a subject's versions, the oldest first.

    Args:
        env: the environment.
        principal: who asks.
        registry: its name.
        subject: its name in the registry, exact.
        page_size: the most items of a page.
        page_token: of the page wanted; None = the first.

    Raises:
        CatalogError: not-found, of the registry or of the subject.
        AccessError, StoreError: as ``list_subjects``.
    """
    found = _ask(env, principal, registry, lambda client: client.versions(subject))
    if found is None:
        raise _no_subject(registry, subject)
    return make_page(
        lambda after, limit: [number for number in found if number > (int(after) if after.isdigit() else 0)][
            :limit
        ],
        str,
        f"versions/{registry}/{subject}",
        page_size,
        page_token,
    )


def get_version(env: Environment, principal: Principal, registry: str, subject: str, version: str) -> Version:
    """A version of a subject, with its schema.

    Args:
        env: the environment.
        principal: who asks.
        registry: its name.
        subject: its name in the registry, exact.
        version: its number, or ``latest``.

    Raises:
        CatalogError: not-found, of the registry, the subject or the version.
        AccessError, StoreError: as ``list_subjects``.
    """
    found = _ask(env, principal, registry, lambda client: client.version(subject, version))
    if found is None and version == "latest":
        raise _no_subject(registry, subject)
    if found is None:
        raise not_found("version", f"{version} of subject '{subject}' of schema registry {quote(registry)}")
    return found


def _no_subject(registry: str, subject: str) -> Exception:
    listed = f"Run leat schema-registry subjects {quote(registry)}: it lists them."
    return not_found("subject", f"'{subject}' of schema registry {quote(registry)}", hint=listed)


def _ask(env: Environment, principal: Principal, name: str, ask: Callable[[RegistryClient], T]) -> T:
    """What a registry answers to one who may use it."""
    authorize(principal, READ, "schema registry", name)
    with env.open_unit(write=False) as unit:
        registry = require_registry(unit, name)
        desk = desk_of(unit)
        if desk is not None:
            desk.require((Privilege.USAGE, "schema_registry", quote(name), registry.meta.owner))
        password = held_password(unit, registry)
    client = open_registry(env, registry, password)
    try:
        return ask(client)
    finally:
        client.close()
