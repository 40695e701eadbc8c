"""Stand-ins behind the ports, so that the contract is tried on the real services without Kafka and Spark."""

from __future__ import annotations

import functools
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from leatstream.connectors.base import Connector
from leatstream.connectors.capabilities import Capabilities, EntityProperty, Guarantee
from leatstream.connectors.entities import Entity, NewRecord, Record, Table, TableColumn
from leatstream.connectors.kafka.entity import PROPERTIES
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.postgres.connector import PostgresConnector
from leatstream.connectors.postgres.types import column_type
from leatstream.connectors.registry import open_connector, with_secrets
from leatstream.connectors.settings import StoreSettings
from leatstream.errors import StoreError
from leatstream.model.access import Account, AccountKind, TokenRow
from leatstream.model.objects import Column, Meta, Store
from leatstream.plan.logical import AnalysisFailure, AnalyzedColumn, FunctionShape, ViewSchema
from leatstream.ports import AnalysisRequest, Sharing
from leatstream.services.environment import Environment, RuntimeSettings
from leatstream.services.environment.authorization import ADMINISTRATOR, mint_token
from leatstream.services.nouns.stores import resolve_store_secrets
from leatstream.storage.checkpoint_directory import CheckpointDirectory
from leatstream.storage.engine import make_engine
from leatstream.storage.migrate import migrate
from leatstream.storage.secret_box import open_secret_box
from leatstream.storage.unit_of_work import SqlUnits, open_units
from leatstream.views.sqlite_store import SqliteViews


@dataclass
class Cluster:
    """Topics in memory."""

    entities: dict[str, Entity] = field(default_factory=dict)
    records: dict[str, list[Record]] = field(default_factory=dict)
    up: bool = True
    endless: bool = False
    closed_readers: int = 0
    forgotten_batches: list[str] = field(default_factory=list)


class MemoryConnector(Connector):
    """A Kafka-like store in memory."""

    kind: ClassVar[str] = "kafka"
    capabilities: ClassVar[Capabilities] = Capabilities(
        source=True,
        sink=True,
        create_entity=True,
        print_records=True,
        realtime=True,
        headers=True,
        batches=True,
        positions=True,
        bounded_runs=True,
        batch_bounds=True,
        hand_over=True,
        error_log=True,
        delivery=(Guarantee("at_least_once", "a fake"), Guarantee("exactly_once", "where asked for")),
    )
    entity_properties: ClassVar[tuple[EntityProperty, ...]] = PROPERTIES
    value_formats: ClassVar[tuple[str, ...]] = ("json", "avro", "protobuf", "json_schema", "primitive")
    Config: ClassVar[type[StoreSettings]] = KafkaConfig

    def __init__(self, name: str, config: StoreSettings, cluster: Cluster) -> None:
        super().__init__(name, config)
        self.cluster = cluster

    def forget_batches(self, query_id: str, timeout: float) -> None:
        self.cluster.forgotten_batches.append(query_id)

    def test(self, timeout: float) -> None:
        if not self.cluster.up:
            raise StoreError("store-unreachable", f"Store {self.name} does not answer.")

    def list_entities(self, timeout: float = 5.0) -> list[Entity]:
        self.test(timeout)
        return sorted(self.cluster.entities.values(), key=lambda e: e.name)

    def find_entity(self, entity: str, timeout: float = 5.0) -> Entity | None:
        self.test(timeout)
        return self.cluster.entities.get(entity)

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        self.cluster.entities.setdefault(entity, Entity(entity, dict(properties), dict(configs)))

    def update_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        old = self.cluster.entities[entity]
        fewer = properties.get("topic.partitions", 1 << 30) < (old.properties.get("topic.partitions") or 0)
        if "topic.replicas" in properties or fewer:
            raise StoreError("store-rejected", "A topic cannot get fewer partitions or other replicas.")
        # As Kafka does: what is not named goes back to the default.
        self.cluster.entities[entity] = Entity(entity, {**old.properties, **properties}, dict(configs))

    def drop_entity(self, entity: str, timeout: float = 10.0) -> None:
        self.cluster.entities.pop(entity, None)

    def property_limits(self, timeout: float = 5.0) -> Mapping[str, int]:
        return {"topic.replicas": 1}

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        try:
            there = self.cluster.records.setdefault(entity, [])
            at = len(there)
            for index, record in enumerate(there if from_beginning else []):
                if index == limit:
                    return
                yield record
                at = max(at, index + 1)
            # A fuzzer would wait for ever for the end of what has none.
            deadline = time.monotonic() + min(idle_timeout if idle_timeout is not None else 0.1, 0.1)
            while self.cluster.endless or time.monotonic() < deadline:
                while at < len(there):
                    at += 1
                    yield there[at - 1]
                yield None
                time.sleep(0.02)
        finally:
            self.cluster.closed_readers += 1

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        self.test(timeout)
        if entity not in self.cluster.entities:
            raise StoreError("entity-not-found", f"Topic {entity} does not exist.")
        there = self.cluster.records.setdefault(entity, [])
        there += [Record(r.key, r.value, 0, len(there) + i, 1, r.headers) for i, r in enumerate(records)]

    def read_stream(self, spark: Any, source: Any, *, realtime: bool) -> Any:
        raise NotImplementedError

    def write_stream(self, frame: Any, sink: Any, *, realtime: bool) -> Any:
        raise NotImplementedError


class MemoryAdmin:
    """Tables in memory, for the real connector of PostgreSQL to look after."""

    def __init__(self) -> None:
        self.found: dict[str, Entity] = {}

    def server(self, timeout: float) -> Mapping[str, str]:
        return {"version": "16.0", "wal_level": "logical"}

    def entities(self, timeout: float) -> list[Entity]:
        return sorted(self.found.values(), key=lambda entity: entity.name)

    def find(self, entity: str, timeout: float) -> Entity | None:
        return self.found.get(PostgresConnector.canonical_entity(entity))

    def identity(self, entity: str, timeout: float) -> str | None:
        return "1" if self.find(entity, timeout) is not None else None

    def create(
        self, entity: str, columns: Sequence[Column], primary_key: Sequence[str], timeout: float
    ) -> bool:
        name, keys = PostgresConnector.canonical_entity(entity), tuple(primary_key)
        if name in self.found:
            return False
        made = tuple(
            TableColumn(
                c.name, PostgresConnector.kept_type(c.type), column_type(c.type), c.not_null or c.name in keys
            )
            for c in columns
        )
        self.found[name] = Entity(name, table=Table(made, keys, (keys,) if keys else ()))
        return True

    def set_identity(self, entity: str, identity: str, timeout: float) -> None:
        pass

    def drop(self, entity: str, timeout: float) -> None:
        self.found.pop(PostgresConnector.canonical_entity(entity), None)


class MemoryTables(PostgresConnector):
    """A PostgreSQL store whose tables are in memory, without rows."""

    def __init__(self, name: str, config: StoreSettings, admin: MemoryAdmin) -> None:
        super().__init__(name, config)
        self.admin: Any = admin

    def read_records(
        self, entity: str, *, from_beginning: bool, limit: int | None, idle_timeout: float | None
    ) -> Iterator[Record | None]:
        self.existing(entity, 1.0)
        return iter(())

    def write_records(self, entity: str, records: Sequence[NewRecord], timeout: float = 10.0) -> None:
        self.existing(entity, timeout)


class FirstViewAnalyzer:
    """Answers every SELECT with the columns of its first view: enough for SELECT * and for the contract."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}

    def analyze(
        self,
        views: Sequence[ViewSchema],
        sql: str,
        timeout: float,
        functions: Sequence[FunctionShape] = (),
        places: Sequence[tuple[int, int]] = (),
    ) -> list[AnalyzedColumn] | AnalysisFailure:
        if places:
            return []
        view = next((view for view in views if "leat_match_" in view.name and view.name in sql), views[0])
        columns = re.findall(r"`((?:[^`]|``)+)` ([A-Z_]+(?:<[A-Z, ]+>)?)", view.ddl)
        if "`__leat_rowmeta`" in sql:
            # The rows of a pattern: conditions are what the contract has of them.
            columns = [(name, "BOOLEAN") for name in re.findall(r" AS `(c\d+)`", sql)]
        keys = re.findall(r"(?:`t\d+`\.`((?:[^`]|``)+)`)? AS `(leat_key_\d+)`", sql)
        if keys:
            # The values that a table's rows are looked up by; those of an expression are texts.
            known = dict(pair for one in views for pair in re.findall(r"`((?:[^`]|``)+)` ([A-Z_]+)", one.ddl))
            columns = [(name, known[column] if column else "STRING") for column, name in keys]
        return [AnalyzedColumn(n.replace("``", "`"), t.lower(), True) for n, t in columns]

    def take(self, driver_id: str) -> AnalysisRequest | None:
        return None

    def complete(
        self, driver_id: str, request_id: str, result: list[AnalyzedColumn] | AnalysisFailure
    ) -> None:
        self.results[request_id] = result


@dataclass
class TableDrivers:
    """Drivers that exist in a table only."""

    tokens: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    is_ready: bool = True
    is_warm: bool = True
    shared: dict[str, list[str]] = field(default_factory=dict)
    crashed: set[str] = field(default_factory=set)
    unserved: set[str] = field(default_factory=set)
    uses: dict[str, dict[str, Any]] = field(default_factory=dict)
    full: str = "the limit of drivers is reached"
    keeps: bool = False

    def authenticate(self, driver_id: str, token: str) -> bool:
        return self.tokens.get(driver_id) == token

    def report(self, driver_id: str, state: str, pid: int) -> None:
        self.states[driver_id] = state

    def note_use(self, driver_id: str, use: Mapping[str, Any]) -> None:
        self.uses[driver_id] = dict(use)

    def role(self, driver_id: str) -> str | None:
        if driver_id in self.shared:
            return "shared"
        return "dedicated" if driver_id in self.tokens else None

    def assigned(self, driver_id: str) -> str | None:
        return self.queries.get(driver_id)

    def shares(self, driver_id: str) -> list[str]:
        return list(self.shared.get(driver_id, ()))

    def assign(self, query_id: str, sharing: Sharing | None = None) -> str | None:
        if sharing is not None:
            place = next((d for d in (sharing.near, *self.shared) if d in self.shared), None)
            if place is not None:
                self.shared[place].append(query_id)
            return place
        alone = (d for d in self.tokens if d not in self.shared)
        free = next((d for d in alone if d not in self.queries), None)
        if free is not None:
            self.queries[free] = query_id
        return free

    def why_none(self) -> str:
        return self.full

    def release(self, driver_id: str, query_id: str) -> None:
        if self.queries.get(driver_id) == query_id:
            del self.queries[driver_id]

    def let_go(self, driver_id: str, query_id: str) -> None:
        if driver_id not in self.shared:
            if self.queries.get(driver_id) == query_id:
                self.end(driver_id)
        elif query_id in self.shared[driver_id]:
            self.shared[driver_id].remove(query_id)

    def keep(self, driver_id: str, query_id: str) -> bool:
        kept = self.keeps and driver_id not in self.shared and self.queries.get(driver_id) == query_id
        if kept:
            del self.queries[driver_id]
        return kept

    def runs(self, driver_id: str, query_id: str) -> bool:
        shared = self.shared.get(driver_id)
        has = query_id in shared if shared is not None else self.queries.get(driver_id) == query_id
        return driver_id in self.tokens and has

    def has_crashed(self, driver_id: str) -> bool:
        return driver_id in self.crashed

    def never_served(self, driver_id: str) -> bool:
        return driver_id in self.unserved

    def assignments(self) -> list[tuple[str, str, float]]:
        return [(d, q, 60.0) for d, q in self.queries.items() if d in self.tokens]

    def serving(self, driver_id: str) -> float:
        return 3600.0

    def process_id(self, driver_id: str) -> int | None:
        return 4242 if driver_id in self.tokens else None

    def is_alive(self, driver_id: str) -> bool:
        return driver_id in self.tokens

    def end(self, driver_id: str, *, grace: float = 0.0) -> None:
        self.tokens.pop(driver_id, None)
        self.shared.pop(driver_id, None)

    def ready(self) -> bool:
        return self.is_ready

    def warm(self) -> bool:
        return self.is_warm


class NamedColumns:
    """Answers a SELECT of columns with those, in its order."""

    def __init__(self, analyzer: Any) -> None:
        self._analyzer = analyzer

    def analyze(self, views: Any, sql: str, timeout: float, functions: Any = ()) -> Any:
        found, head = self._analyzer.analyze(views, sql, timeout, functions), sql.split("FROM")[0]
        assert isinstance(found, list)
        named = [column for column in found if f"`{column.name}`" in head]
        return sorted(named, key=lambda column: head.index(f"`{column.name}`"))


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass
class World:
    """Everything a test may look at or change behind the API."""

    env: Environment
    units: SqlUnits
    cluster: Cluster
    drivers: TableDrivers
    token: str
    reader_token: str

    @property
    def headers(self) -> dict[str, str]:
        """Of the administrator."""
        return {"Authorization": f"Bearer {self.token}"}

    def with_real(self, **classes: type[Connector]) -> Environment:
        """The environment with the real connectors of these kinds beside topics in memory."""
        memory = self.env.connect

        def connect(store: Store) -> Connector:
            if store.kind not in classes:
                return memory(store)
            with self.units(write=False) as unit:
                secrets = resolve_store_secrets(env, unit, store)
            return open_connector(store.kind, store.name, store.config, secrets)

        known = {**self.env.connector_classes, **classes}
        env = replace(self.env, connect=connect, connector_classes=known)
        return env

    def with_tables(self) -> Environment:
        """The environment with PostgreSQL stores, all of the same tables in memory, beside the topics."""
        memory, admin = self.env.connect, MemoryAdmin()

        def connect(store: Store) -> Connector:
            if store.kind != MemoryTables.kind:
                return memory(store)
            return MemoryTables(store.name, MemoryTables.Config.model_validate(store.config), admin)

        known = {**self.env.connector_classes, MemoryTables.kind: MemoryTables}
        return replace(self.env, connect=connect, connector_classes=known)


@functools.cache
def _empty_catalog() -> bytes:
    """The file of a migrated catalog: to migrate one for each test takes longer than most tests."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "catalog.db"
        migrate(f"sqlite:///{path}")
        return path.read_bytes()


_compiled: dict[Any, Any] = {}
_dialect: list[Any] = []


def _open_file(path: Path) -> SqlUnits:
    """Units of work of a catalog in SQLite.

    All share what SQLAlchemy has compiled, which is bound to a dialect: most worlds ask the same.
    """
    engine = make_engine(f"sqlite:///{path}")
    _dialect[:] = _dialect or [engine.dialect]
    engine.dialect = _dialect[0]
    return SqlUnits(engine.execution_options(compiled_cache=_compiled))


def account(name: str, role: str, now: datetime) -> Account:
    """A user with one role."""
    meta = Meta(
        id=f"acc_{name}", generation=1, created_at=now, updated_at=now, created_by=name, owner="orgadmin"
    )
    return Account(meta=meta, name=name, kind=AccountKind.USER, roles=(role,), default_role=role)


def token_row(token_id: str, token_hash: str, name: str, role: str, now: datetime) -> TokenRow:
    """A token of a user, with every scope."""
    return TokenRow(
        id=token_id,
        hash=token_hash,
        name=f"{name}_token",
        principal=name,
        role=role,
        scope="admin",
        created_at=now,
        created_by=name,
    )


def administrator(world: World) -> str:
    """The value of a token as the server's own, which has every privilege."""
    token, token_id, token_hash = mint_token()
    row = token_row(token_id, token_hash, ADMINISTRATOR, "sysadmin", datetime.now(UTC))
    with world.units() as unit:
        unit.tokens.add(replace(row, name=ADMINISTRATOR))
        unit.commit()
    return token


def make_world(directory: Path, catalog: str | None = None) -> World:
    """Real services and a real catalog over fakes.

    Args:
        directory: for its files.
        catalog: URL of a migrated and empty catalog; left out: one in SQLite.
    """
    if catalog is None:
        path = directory / "catalog.db"
        path.write_bytes(_empty_catalog())
        units = _open_file(path)
    else:
        units = open_units(catalog)
    token, token_id, token_hash = mint_token()
    reader, reader_id, reader_hash = mint_token()
    with units() as unit:
        now = datetime.now(UTC)
        for name, role, one, its_hash in (
            ("ann", "sysadmin", token_id, token_hash),
            ("bob", "reader", reader_id, reader_hash),
        ):
            unit.accounts.add(account(name, role, now))
            unit.tokens.add(token_row(one, its_hash, name, role, now))
        unit.commit()
    cluster, drivers = Cluster(), TableDrivers()

    def connect(store: Store) -> Connector:
        with units(write=False) as unit:
            secrets = resolve_store_secrets(env, unit, store)
        config = KafkaConfig.model_validate(with_secrets(store.config, secrets))
        return MemoryConnector(store.name, config, cluster)

    env = Environment(
        open_unit=units,
        clock=RealClock(),
        secrets=open_secret_box(directory / "keys.json"),
        connect=connect,
        connector_classes={"kafka": MemoryConnector},
        analyzer=FirstViewAnalyzer(),
        drivers=drivers,
        views=SqliteViews(directory / "views"),
        checkpoints=CheckpointDirectory(directory / "checkpoints"),
        settings=RuntimeSettings(
            checkpoint_root=str(directory / "checkpoints"),
            log_dir=directory / "logs",
            default_store="kafka_store",
            isolated_drivers=True,  # no user's code runs here
        ),
    )
    return World(env, units, cluster, drivers, token, reader)
