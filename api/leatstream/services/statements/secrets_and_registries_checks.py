"""The dry run of statements about secrets, schema registries and descriptor sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leatstream.errors import CatalogError, RequestError, already_exists
from leatstream.model.names import quote
from leatstream.model.registered import SecretName
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Context, Environment
from leatstream.services.nouns.dependents import refuse_dependents
from leatstream.services.nouns.descriptor_sources import require_descriptor_source
from leatstream.services.nouns.named_secrets import require_secret, secret_dependents
from leatstream.services.nouns.names import single
from leatstream.services.nouns.schema_registries import registry_dependents, require_registry
from leatstream.services.nouns.stores import require_registry_of
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.services.statements.secrets_and_registries import NOUN_OF, check_create, check_secret
from leatstream.sql import statements as ast
from leatstream.sql.registered_properties import read_registry_properties

REQUIRE: Mapping[str, Callable[[UnitOfWork, str], Any]] = {
    "secret": require_secret,
    "schema_registry": require_registry,
    "descriptor_source": require_descriptor_source,
}


def secret_value(view: CatalogView, s: ast.CreateStore | ast.UpdateStore, value: str | SecretName) -> str:
    """The value, or one that stands for that of a secret: a dry run opens none.

    Args:
        view: the catalog, with what is assumed.
        s: the statement.
        value: a value, or the name of a secret.
    """
    if isinstance(value, str):
        return value
    if not view.assumed.has("secret", value.name) and view.unit.named_secrets.find(value.name) is None:
        detail = "A property names a secret that does not exist."
        raise RequestError("validation", detail, position=s.position, hint="CREATE SECRET first")
    return "x" * 40


def require_registry_named(view: CatalogView, name: str | None, s: ast.CreateStore | ast.UpdateStore) -> None:
    """Raise RequestError if a store names a schema registry that is neither there nor planned.

    Args:
        view: the catalog, with what is assumed.
        name: of the registry; None = the store names none.
        s: the statement.
    """
    if name is not None and not view.assumed.has("schema_registry", name):
        try:
            require_registry_of(view.unit, name)
        except RequestError as error:
            raise error.at(s.properties["schema_registry.name"].position) from None


def create(env: Environment, view: CatalogView, s: ast.CreateRegistered, context: Context) -> None:
    """CREATE of one of the three.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
        context: database, schema and store of the session.
    """
    check_create(env, s)
    noun, name = NOUN_OF[type(s)], single(s.name)
    if s.if_not_exists or s.or_replace or (noun, quote(name)) in view.assumed.dropped:
        return
    try:
        exists(view, noun, name)
    except CatalogError:
        return
    raise already_exists(noun, quote(name))


def update(
    env: Environment, view: CatalogView, s: ast.UpdateSecret | ast.UpdateSchemaRegistry, context: Context
) -> None:
    """UPDATE SECRET and UPDATE SCHEMA_REGISTRY.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
        context: database, schema and store of the session.
    """
    if isinstance(s, ast.UpdateSecret):
        check_secret(env, s, update=True)
        exists(view, "secret", single(s.name))
        return
    exists(view, "schema_registry", single(s.name))
    found = view.unit.schema_registries.find(single(s.name))
    if found is not None:
        read_registry_properties(s.properties, found.kind)


def exists(view: CatalogView, noun: str, name: str) -> None:
    """Raise CatalogError not-found unless the object exists or is planned.

    Args:
        view: the catalog, with what is assumed.
        noun: what kind of object it is.
        name: of the object.
    """
    if not view.assumed.has(noun, name):
        REQUIRE[noun](view.unit, name)


def refuse_used(view: CatalogView, noun: str, name: str) -> None:
    """Raise has-dependents if something uses the object.

    Args:
        view: the catalog, with what is assumed.
        noun: what kind of object it is.
        name: of the object.
    """
    if noun == "secret":
        refuse_dependents(f"secret {quote(name)}", secret_dependents(view.unit, name), view.unit)
    elif noun == "schema_registry":
        refuse_dependents(f"schema registry {quote(name)}", registry_dependents(view.unit, name), view.unit)
