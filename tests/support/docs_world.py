"""The world that the documentation's SQL runs in: real servers at whatever address a page writes, types by Spark."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import fakes
from aws_server import REGION, bucket
from lakes import glue_lake, rest_lake
from postgres_server import PASSWORD, PostgresServer
from spark_analyzer import SparkAnalyzer
from starlette.testclient import TestClient

from leatstream.connectors.base import Connector
from leatstream.connectors.kafka.connector import KafkaConnector
from leatstream.connectors.kafka.settings import KafkaConfig
from leatstream.connectors.registry import connector_classes
from leatstream.formats.registry_client import RegistryAddress, RegistryClient
from leatstream.model.objects import Query, Store
from leatstream.model.outside_secrets import OutsideReference
from leatstream.rest.app import create_app
from leatstream.services import driver_calls as drivers
from leatstream.services.driver_calls import build_spec
from leatstream.services.environment import Principal
from leatstream.services.environment.outside_secrets import OutsideSecrets
from leatstream.services.queries import catalog as queries
from leatstream.services.queries.checkpoints.copies import copy_what_waits
from leatstream.services.queries.reconcile.reconciler import reconcile_all
from leatstream.views.base import Batch
from leatstream.views.opening import view_writer

FIXTURES = Path(__file__).parents[1] / "fixtures" / "docs"
_KEYS = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "a-secret"}
_ANN = Principal("ann", "sysadmin")
_numbers = itertools.count(1)


class TidyKafka(KafkaConnector):
    """A real connector that remembers which topics were made, so that a page leaves none behind."""

    made: set[str]

    def create_entity(
        self, entity: str, properties: Mapping[str, int], configs: Mapping[str, str], timeout: float = 10.0
    ) -> None:
        self.made.add(entity)
        super().create_entity(entity, properties, configs, timeout)


class _Vault:
    """Has every value (``ports.SecretProvider``); tests/unit/secret_stores reads Vault's wire."""

    def permits(self, reference: OutsideReference) -> str | None:
        return None

    def read(self, reference: OutsideReference) -> str:
        return f"the value of {reference.path}"


@dataclass(frozen=True, slots=True)
class Servers:
    """Addresses of what the pages' stores and registries are in truth; the registry is asked for when one is used.

    Attributes:
        others: further kinds, each with what gives the settings of its server when a page uses it.
    """

    kafka: str
    postgres: PostgresServer
    aws: str
    registry: Callable[[], str]
    others: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(slots=True)
class DocsWorld:
    """A catalog of a page's own.

    Attributes:
        http: the administrator's client.
        world: what is behind the API, as ``fakes.py`` has it.
        context: what unqualified names mean, carried from text to text.
    """

    http: TestClient
    world: Any
    context: dict[str, Any] = field(default_factory=dict)

    def run(
        self, sql: str, files: Mapping[str, str] | None = None, *, atomic: bool = False
    ) -> list[dict[str, Any]]:
        """Run a text; its results.

        Raises:
            AssertionError: with the problem, if it is refused.
        """
        body = {"sql": sql, "files": dict(files or {}), "atomic": atomic, **self.context}
        answer = self.http.post("/v1/statements", json=body)
        assert answer.status_code == 200, f"{told(answer.json())}\n{sql}"
        self.context = {k: v for k, v in answer.json()["context"].items() if v is not None}
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    def job_runs(self, name: str, read: int = 7) -> None:
        """What a driver does: take the query, commit batch 3, and say how far each source is read."""
        reconcile_all(self.world.env)
        copy_what_waits(self.world.env)
        reconcile_all(self.world.env)
        query = self._query(name)
        place = Path(self.world.env.settings.checkpoint_root) / "queries" / query.meta.id
        place /= f"g{query.checkpoint_generation}"
        texts = {
            "offsets": f'v1\n{{"batchWatermarkMs":0}}\n{{"pageviews":{{"0":{read}}}}}',
            "commits": "v1\n{}",
        }
        for folder, text in texts.items():
            (place / folder).mkdir(parents=True, exist_ok=True)
            (place / folder / "3").write_text(text)
        (place / "metadata").write_text('{"id":"x"}')
        row = {"relation": "demo.shop.pageviews", "entity": "pageviews", "end_offsets": {"0": read}, "lag": 0}
        self._beat(name, "running", progress={"sources": [row]})
        reconcile_all(self.world.env)

    def job_ends(self, name: str) -> None:
        """Its job obeys an order to stop; a savepoint that waits for that is copied."""
        reconcile_all(self.world.env)
        driver = self._query(name).status.driver_id
        self._beat(name, "stopped")
        self.world.drivers.tokens.pop(driver)
        reconcile_all(self.world.env)
        copy_what_waits(self.world.env)

    def view_has(self, name: str, *rows: tuple[Any, ...]) -> None:
        """What the job of a materialized view does with one batch."""
        with self.world.units(write=False) as unit:
            spec = build_spec(self.world.env, unit, unit.queries.find(name))
        writer = view_writer(spec)
        writer.open()
        now = int(self.world.env.clock.now().timestamp() * 1_000_000)
        assert writer.apply(Batch(3, rows, [], now))
        writer.close()

    def _query(self, name: str) -> Query:
        return queries.get_query(self.world.env, _ANN, name)

    def _beat(self, name: str, state: str, **more: Any) -> None:
        query = self._query(name)
        report = {"query_id": query.meta.id, "attempt": query.status.attempt, "state": state, **more}
        report["fencing_token"] = drivers.fencing_token(query)
        drivers.heartbeat(self.world.env, query.status.driver_id or "", report)


def told(problem: Mapping[str, Any]) -> str:
    """A problem without the results of the statements before it."""
    return json.dumps({k: v for k, v in problem.items() if k != "results"}, ensure_ascii=False)


@contextmanager
def docs_world(directory: Path, spark: Any, servers: Servers) -> Iterator[DocsWorld]:
    """An empty catalog over the servers, with a PostgreSQL database of its own; topics go at the end."""
    world = fakes.make_world(directory)
    database = f"docs_{next(_numbers)}"
    made: set[str] = set()
    kafka = TidyKafka("docs", KafkaConfig.model_validate({"bootstrap_servers": servers.kafka}))
    kafka.made = made
    own: dict[str, dict[str, Any]] = {
        "kinesis": {"region": REGION, "endpoint_url": servers.aws, **_KEYS},
        "postgres": servers.postgres.config(password=PASSWORD, database=database),
        "s3": {"region": REGION, "endpoint_url": servers.aws, **_KEYS},
    }
    lakes = contextlib.ExitStack()

    def connect(store: Store) -> Connector:
        if store.kind == "kafka":
            return kafka
        if store.kind.startswith("iceberg_") and store.kind not in own:
            open_lake = rest_lake if store.kind == "iceberg_rest" else glue_lake
            lake = lakes.enter_context(open_lake(servers.aws))
            own[store.kind] = {**lake.config, **lake.secrets}
        kept = {k: store.config[k] for k in ("bucket", "prefix") if store.config.get(k)}
        if "bucket" in kept:
            bucket(servers.aws, kept["bucket"])
        kind = connector_classes()[store.kind]
        settings = own[store.kind] if store.kind in own else dict(servers.others[store.kind]())
        return kind(store.name, kind.Config.model_validate(settings | kept))

    def open_registry(address: RegistryAddress, timeout: float) -> RegistryClient:
        return RegistryClient(RegistryAddress(address.name, address.kind, (servers.registry(),)), timeout)

    env = replace(
        world.env,
        connect=connect,
        connector_classes=connector_classes(),
        analyzer=SparkAnalyzer(spark),
        open_registry=open_registry,
        outside=OutsideSecrets({"vault": _Vault()}),
    )
    world.env = env
    world.drivers.tokens.update({f"d{n}": "token" for n in range(8)})
    with servers.postgres.connect() as connection:
        connection.execute(f"CREATE DATABASE {database} OWNER shop")
    try:
        with servers.postgres.connect(database) as connection:
            connection.execute((FIXTURES / "postgresql.sql").read_text(encoding="utf-8"))
        headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
        with TestClient(create_app(env), headers=headers) as opened:
            yield DocsWorld(opened, world)
    finally:
        lakes.close()
        for topic in sorted(made):
            kafka.drop_entity(topic)
        world.units.close()
        with servers.postgres.connect() as connection:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)")
