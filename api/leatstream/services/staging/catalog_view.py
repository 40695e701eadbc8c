"""The catalog as a statement sees it: what is stored, plus what the caller asks to assume.

Terraform plans several objects before any of them exists; it sends the planned bodies along so that the whole
chain can be checked. Assumed objects hide stored ones of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from leatstream.connectors.entities import Entity
from leatstream.errors import MISSING, LeatstreamError, RequestError, not_found, sentence
from leatstream.formats.registry_client import RegistryAddress, RegistryClient
from leatstream.model.access import Account, AccountKind, Role
from leatstream.model.functions import (
    DEFAULT_TIMEOUT_SECONDS,
    FunctionDefinition,
    FunctionSource,
    UserFunction,
)
from leatstream.model.names import Fqn, did_you_mean, quote, split
from leatstream.model.objects import Column, Database, Meta, Relation, RelationKind, Schema, Store
from leatstream.model.registered import SchemaRegistry, SecretName
from leatstream.model.types import parse_type
from leatstream.ports import UnitOfWork
from leatstream.services.environment import Context, Environment
from leatstream.services.nouns.descriptor_sources import require_descriptor_source
from leatstream.services.nouns.places import authorize_place
from leatstream.services.nouns.relation_definition import RelationDefinition
from leatstream.services.nouns.schema_registries import (
    check_registry,
    held_password,
    moved,
    open_registry,
    without_blanks,
)
from leatstream.services.nouns.schemas import schema_key
from leatstream.services.nouns.secret_values import SecretValue, planned_value
from leatstream.sql.statements import Name


@dataclass(frozen=True, slots=True)
class AssumedQuery:
    """A planned query, or application, whose sinks others may read."""

    name: str
    sql: str
    context: Context


@dataclass(slots=True)
class Assumed:
    """Planned objects, as read from a request.

    Attributes:
        ends: savepoints that statements before make, and queries that they make or stop.
    """

    stores: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    relations: dict[str, RelationDefinition] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)
    databases: set[str] = field(default_factory=set)
    entities: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    queries: list[AssumedQuery] = field(default_factory=list)
    applications: list[AssumedQuery] = field(default_factory=list)
    function_sources: dict[str, tuple[str, str]] = field(default_factory=dict)
    functions: dict[str, FunctionDefinition] = field(default_factory=dict)
    unseen_sources: set[str] = field(default_factory=set)
    dropped: set[tuple[str, str]] = field(default_factory=set)
    registered: set[tuple[str, str]] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    store_registries: dict[str, str] = field(default_factory=dict)
    registries: dict[str, tuple[SchemaRegistry, SecretValue]] = field(default_factory=dict)
    descriptor_sets: dict[str, str] = field(default_factory=dict)
    roles: set[str] = field(default_factory=set)
    accounts: dict[str, AccountKind] = field(default_factory=dict)

    def has(self, noun: str, name: str) -> bool:
        """Whether a secret, schema registry or descriptor source is planned."""
        return (noun, name) in self.registered

    @classmethod
    def read(cls, body: Mapping[str, Any] | None) -> Assumed:
        """Read the ``assume`` member of a validation request.

        Raises:
            RequestError: ``validation``, if a planned object cannot be read.
        """
        assumed = cls()
        try:
            for item in (body or {}).get("databases") or []:
                assumed.databases.add(item["name"])
                assumed.schemas.add(schema_key(item["name"], "public"))
            for item in (body or {}).get("schemas") or []:
                assumed.schemas.add(schema_key(item["database"], item["name"]))
            for item in (body or {}).get("stores") or []:
                kind = next((k for k, v in item.items() if isinstance(v, Mapping)), None)
                if kind is not None:
                    assumed.stores[item["name"]] = (kind, dict(item[kind]))
                if item.get("schema_registry"):
                    assumed.store_registries[item["name"]] = item["schema_registry"]
            for item in (body or {}).get("schema_registries") or []:
                assumed.registered.add(("schema_registry", item["name"]))
                if item.keys() >= {"type", "uris"}:
                    assumed.registries[item["name"]] = planned_registry(item)
            for item in (body or {}).get("descriptor_sources") or []:
                assumed.registered.add(("descriptor_source", item["name"]))
                if "descriptor_set" in item:
                    assumed.descriptor_sets[item["name"]] = item["descriptor_set"]
            for item in (body or {}).get("entities") or []:
                shape = next((v for v in item.values() if isinstance(v, Mapping)), {})
                numbers = {f"topic.{k}": v for k, v in shape.items() if isinstance(v, int)}
                assumed.entities[item["store"], item["name"]] = numbers
            for item in (body or {}).get("relations") or []:
                fqn = Fqn(item["database"], item["schema"], item["name"])
                assumed.relations[str(fqn)] = _definition(item)
            for item in (body or {}).get("queries") or []:
                context = Context(item.get("database"), item.get("schema"), item.get("store"))
                assumed.queries.append(AssumedQuery(item["name"], item["sql"], context))
            for item in (body or {}).get("applications") or []:
                context = Context(item.get("database"), item.get("schema"), item.get("store"))
                assumed.applications.append(AssumedQuery(item["name"], item["sql"], context))
            for item in (body or {}).get("function_sources") or []:
                if "file" in item and "content" in item:
                    assumed.function_sources[item["name"]] = (item["file"], item["content"])
            for item in (body or {}).get("functions") or []:
                if item.keys() >= {"returns", "source", "handler"}:
                    assumed.functions[item["name"]] = _function(item)
        except (KeyError, TypeError, ValueError, StopIteration) as error:
            raise RequestError(
                "validation", sentence(f"An assumed object cannot be read: {error!r}"), pointer="#/assume"
            ) from error
        return assumed


def _function(item: Mapping[str, Any]) -> FunctionDefinition:
    arguments = tuple(Column(a["name"], parse_type(a["type"])) for a in item.get("arguments") or [])
    timeout = item.get("timeout_seconds")
    return FunctionDefinition(
        arguments=arguments,
        returns=parse_type(item["returns"]),
        source=item["source"],
        handler=item["handler"],
        timeout_seconds=DEFAULT_TIMEOUT_SECONDS if timeout is None else timeout,
    )


def planned_registry(item: Mapping[str, Any]) -> tuple[SchemaRegistry, SecretValue]:
    """A planned registry and its password, where the plan spells it out or names the secret that holds it."""
    registry = SchemaRegistry(
        meta=assumed_meta(datetime.now(UTC), item["name"]),
        name=item["name"],
        kind=item["type"],
        uris=without_blanks(item["uris"]),
        username=item.get("username"),
        ca_certificate=item.get("ca_certificate"),
    )
    named = item.get("password_secret")
    return registry, SecretName(named) if named else item.get("password")


def _definition(item: Mapping[str, Any]) -> RelationDefinition:
    columns = tuple(
        Column(c["name"], parse_type(c["type"]), bool(c.get("not_null")), c.get("comment"))
        for c in item.get("columns") or []
    )
    return RelationDefinition(
        columns=columns,
        kind=RelationKind(item.get("kind") or "stream"),
        primary_key=tuple(item.get("primary_key") or ()),
        store=item.get("store"),
        topic=item.get("topic"),
        value_format=item.get("value_format"),
        key_format=item.get("key_format"),
        key_type=item.get("key_type"),
        timestamp=item.get("timestamp"),
        timestamp_format=item.get("timestamp_format"),
        properties=dict(item.get("properties") or {}),
    )


class CatalogView:
    """Reads objects for planning.

    Args:
        unit: an open unit of work.
        assumed: planned objects; ``stores`` and ``relations`` take the checked ones among them.
    """

    def __init__(self, unit: UnitOfWork, assumed: Assumed | None = None) -> None:
        self.unit = unit
        # Inside a dry run a unit has planned objects of its own.
        under = getattr(unit, "planned", None)
        own: Assumed = under.assumed if isinstance(under, CatalogView) else Assumed()
        self.assumed: Assumed = assumed or own
        self.stores: dict[str, Store] = {}
        self.relations: dict[str, Relation] = {}
        self.function_sources: dict[str, FunctionSource] = {}
        self.functions: dict[str, UserFunction] = {}
        self.faulty: dict[str, LeatstreamError] = {}  # planned relations that cannot be as they are planned
        self._late: Callable[[Fqn], Relation | None] | None = None
        # Stores of relations that were resolved: who may read a relation need not see its store.
        self._behind: set[str] = set()

    def plan_late(self, late: Callable[[Fqn], Relation | None]) -> None:
        """Ask ``late`` for relations that are neither planned nor stored: a planned query may make them."""
        self._late = late

    def find_store(self, name: str) -> Store | None:
        """The planned or stored store."""
        unit = self.unit.unfiltered if name in self._behind else self.unit
        return self.stores.get(name) or unit.stores.find(name)

    def find_registry(self, name: str) -> SchemaRegistry | None:
        """The planned or stored schema registry."""
        planned = self.assumed.registries.get(name)
        return planned[0] if planned is not None else self.unit.schema_registries.find(name)

    def registry_of(self, store: Store) -> SchemaRegistry | None:
        """The registry that a usable store names, or None; who uses the store need not see it."""
        if store.schema_registry is None:
            return None
        planned = self.find_registry(store.schema_registry)
        return planned or self.unit.unfiltered.schema_registries.find(store.schema_registry)

    def source_of(self, function: UserFunction | FunctionDefinition) -> FunctionSource:
        """The source of a usable function; who uses the function need not see it. CatalogError not-found."""
        name = function.source
        found = self.find_source(name) or self.unit.unfiltered.function_sources.find(name)
        if found is None:
            raise not_found("function source", quote(name))
        return found

    def open_registry(self, env: Environment, registry: SchemaRegistry) -> RegistryClient:
        """A client of a planned or stored schema registry."""
        planned = self.assumed.registries.get(registry.name)
        stored = self.unit.schema_registries.find(registry.name)
        if planned is None or planned[0] is not registry:
            return open_registry(env, registry, held_password(self.unit, registry))
        authorize_place(env, self.unit, "schema_registry", registry.name)
        if planned[1] is None and stored is not None and not moved(stored, registry):
            # A password that is left out stays, for the place that it was given for.
            registry = replace(registry, secrets=stored.secrets)
            return open_registry(env, registry, held_password(self.unit, registry))
        check_registry(
            registry.kind,
            registry.uris,
            registry.username,
            # One that is given apart from the plan, as Terraform's are, is not seen here.
            has_password=registry.username is not None,
            ca_certificate=registry.ca_certificate,
        )
        address = RegistryAddress.of(
            registry.name,
            registry.kind,
            registry.uris,
            registry.username,
            planned_value(env, self.unit, planned[1]),
            registry.ca_certificate,
        )
        return env.open_registry(address, env.settings.store_timeout)

    def require_descriptor_set(self, name: str) -> str:
        """The planned or stored descriptor set (base64) of a descriptor source; CatalogError not-found."""
        planned = self.assumed.descriptor_sets.get(name)
        return planned or require_descriptor_source(self.unit, name).descriptor_set

    def find_relation(self, fqn: Fqn) -> Relation | None:
        """The planned or stored relation."""
        found = self.relations.get(str(fqn)) or self.unit.relations.find(str(fqn))
        if found is None and self._late is not None:
            found = self._late(fqn)
        return found

    def find_planned(self, noun: str, key: str) -> Any:
        """The planned object of a catalog's noun and key, also one that a planned query makes; or None."""
        if noun == "relations":
            found = self.find_relation(Fqn.parse(key))
            return found if found is not None and self.is_assumed(found) else None
        if noun in ("stores", "functions", "function_sources"):
            return getattr(self, noun).get(key)
        now = datetime.now(UTC)
        if noun == "roles" and key in self.assumed.roles:
            return Role(meta=assumed_meta(now, key), name=key)
        if noun == "accounts" and key in self.assumed.accounts:
            return Account(meta=assumed_meta(now, key), name=key, kind=self.assumed.accounts[key])
        if noun == "databases" and key in self.assumed.databases:
            return Database(meta=assumed_meta(now, key), name=key)
        if noun == "schemas" and key in self.assumed.schemas:
            database, name = split(key)
            return Schema(meta=assumed_meta(now, key), database=database, name=name)
        return None

    def find_function(self, name: str) -> UserFunction | None:
        """The planned or stored function of a user."""
        return self.functions.get(name) or self.unit.functions.find(name)

    def find_source(self, name: str) -> FunctionSource | None:
        """The planned or stored function source."""
        return self.function_sources.get(name) or self.unit.function_sources.find(name)

    def is_assumed(self, relation: Relation) -> bool:
        """Whether the relation is only planned."""
        return relation.meta.generation == 0

    def planned_entity(self, store: str, entity: str) -> Entity | None:
        """An entity that the same plan makes."""
        properties = self.assumed.entities.get((store, entity))
        return None if properties is None else Entity(entity, properties)

    def has_database(self, name: str) -> bool:
        """Whether the database is planned or stored."""
        return name in self.assumed.databases or self.unit.databases.find(name) is not None

    def has_schema(self, database: str, schema: str) -> bool:
        """Whether the schema is planned or stored."""
        key = schema_key(database, schema)
        return key in self.assumed.schemas or self.unit.schemas.find(key) is not None

    def require_store(self, name: str, position: Any = None) -> Store:
        """The store, or a RequestError with near names."""
        found = self.find_store(name)
        if found is None:
            names = [s.name for s in self.unit.stores.page(limit=1000)] + list(self.stores)
            raise RequestError(
                "unknown-relation",
                f"Store {quote(name)} does not exist.",
                position=position,
                hint=did_you_mean(name, names),
                sqlstate=MISSING["store"],
            )
        return found

    def resolve(self, name: Name, context: Context) -> Relation:
        """The relation a name in FROM or INTO means in a context.

        Raises:
            RequestError: ``unknown-relation`` with position and near names.
        """
        fqn = qualify(name, context)
        if str(fqn) in self.faulty:
            raise self.faulty[str(fqn)].at(name.position)
        found = self.find_relation(fqn)
        if found is None:
            names = [r.fqn.name for r in self.unit.relations.page(limit=10_000)]
            names += [r.fqn.name for r in self.relations.values()]
            missing = (
                ""
                if self.has_schema(fqn.database, fqn.schema)
                else (f"; schema {schema_key(fqn.database, fqn.schema)} does not exist")
            )
            raise RequestError(
                "unknown-relation",
                f"Relation {fqn} does not exist{missing}.",
                position=name.position,
                hint=did_you_mean(fqn.name, names),
                fqn=str(fqn),
            )
        self._behind.add(found.store)
        return found


def qualify(name: Name, context: Context) -> Fqn:
    """The full name; missing parts come from the context, the schema ``public`` at last.

    Raises:
        RequestError: ``unknown-relation`` if there is no database or too many parts.
    """
    parts = name.parts
    if len(parts) > 3:
        raise RequestError("sql-syntax", "A relation's name has at most three parts.", position=name.position)
    if len(parts) < 3 and context.database is None and len(parts) != 3:
        raise RequestError(
            "unknown-relation",
            f"No database is chosen, so {'.'.join(map(quote, parts))} cannot be found.",
            position=name.position,
            hint="Write database.schema.name, or USE DATABASE first.",
            sqlstate=MISSING["database"],
        )
    database = parts[0] if len(parts) == 3 else context.database or ""
    schema = parts[-2] if len(parts) > 1 else context.schema or "public"
    return Fqn(database, schema, parts[-1])


def assumed_meta(env_now: Any, name: str) -> Meta:
    """Meta of an object that is only planned."""
    return Meta(
        id=f"assumed_{name}", generation=0, created_at=env_now, updated_at=env_now, created_by="", owner=""
    )
