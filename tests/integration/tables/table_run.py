"""A query over files whose sink is a table of a real server, as tests run it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deadlines import patient
from pyspark.sql import SparkSession
from test_changelogs import Run, relation_of

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import open_connector
from leatstream.errors import LeatstreamError
from leatstream.model.objects import Column, Relation, RelationKind
from leatstream.model.types import parse_type
from leatstream.plan.job_spec import Delivery, JobSpec, StoreRef
from leatstream.plan.logical import LogicalPlan
from leatstream.services.planning.specs import lookup_spec
from leatstream.sql.statements import Name
from leatstream_jobs.attempt.failures import Failure, chain_of, classify

Row = tuple[Any, ...]
ITEMS_COLUMNS = "item VARCHAR, label VARCHAR"


@dataclass(frozen=True)
class TableServer:
    """A running server of a kind, as tests see it.

    Attributes:
        kind: of the store.
        config: settings without secrets.
        secrets: field path to value.
        rows: reads a table past leatstream, as its users do: columns in the table's order, sorted by the first.
        entity: makes the entity of a table's short name, such as ``schema.name``.
    """

    kind: str
    config: Mapping[str, Any]
    secrets: Mapping[str, str]
    rows: Callable[[str], list[Row]]
    entity: Callable[[str], str] = field(default=lambda name: name)

    def connector(self) -> Connector:
        """A connector of its own."""
        return open_connector(self.kind, "target", self.config, self.secrets)


class TableRun(Run):
    """A statement over files whose sink is a table; it may look rows up in a table ``items``."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        sql: str,
        relations: dict[str, Any],
        server: TableServer,
        items: tuple[Connector, str] | None = None,
    ) -> None:
        self.items = items
        super().__init__(spark, folder, sql, relations)
        self.server = server
        self.table = server.entity(f"t_{uuid.uuid4().hex[:8]}")
        self.target = server.connector()
        store = StoreRef(name="target", kind=server.kind, config=dict(server.config))
        updates = self.plan.operator is None and _updates(self.plan)
        self.spec = self.spec.model_copy(
            update={
                "sink": self.spec.sink.model_copy(update={"store": store, "entity": self.table}),
                "query_id": uuid.uuid4().hex,
                "delivery": Delivery.EXACTLY_ONCE,
                "output_mode": "update" if updates else "append",
                "checkpoint": (folder / "q" / "g1").as_uri(),
                "lookups": [lookup_spec(self._live(), one) for one in self.plan.lookups],
            }
        )
        self.started: Any = None

    def _find(self, name: Name) -> Relation:
        if self.items is None or name.parts[-1] != "items":
            return super()._find(name)
        declared = relation_of("items", {"columns": ITEMS_COLUMNS, "primary_key": ["item"]})
        return replace(
            declared, kind=RelationKind.TABLE, store="items", entity=self.items[1], value_format=""
        )

    def _live(self) -> Any:
        """The stores of looked-up tables, as plans see them."""
        assert self.items is not None or not self.plan.lookups
        kind = self.items[0].kind if self.items is not None else ""
        return SimpleNamespace(
            store=lambda name: SimpleNamespace(name=name, kind=kind, config={}, secrets={})
        )

    def make(self) -> None:
        """The table that the service would make."""
        columns = [Column(c.name, parse_type(c.type), c.not_null) for c in self.spec.sink.columns]
        self.target.create_table(self.table, columns, self.spec.sink.key_columns)

    def connect(self, store: StoreRef) -> Connector:
        """The server's for the sink, files for the sources."""
        if store.name == "items" and self.items is not None:
            return self.items[0]
        return self.target if store.name == "target" else self.store

    def attempt(self, number: int) -> JobSpec:
        """The job's next start."""
        return self.spec.model_copy(update={"attempt": number})

    def run(self, spec: JobSpec | None = None) -> None:
        """Process all files, in a job of its own, which ends by itself if the job is a bounded one."""
        from leatstream_jobs.attempt import run_query

        spec = spec or self.spec
        self.started = run_query.start(self.spark, spec, self.connect, 2)
        try:
            if spec.available_now:
                assert self.started.query.awaitTermination(int(patient(60)))
            else:
                self.started.query.processAllAvailable()
        finally:
            self.started.query.stop()

    def failure(self, spec: JobSpec | None = None) -> Failure:
        """Run to an error, as the driver reports it."""
        try:
            self.run(spec)
        except LeatstreamError as error:
            return Failure(error.code if error.code.startswith("job") else "job-failed", error.detail)
        except Exception:
            return classify(chain_of(self.started.batches.error), self.spec)
        pytest.fail("it did not fail")

    def uncommit(self, batch: int) -> None:
        """Make Spark forget that a batch is complete, as where the driver dies behind the sink's commit."""
        commits = Path(self.spec.checkpoint.removeprefix("file://")) / "commits"
        (commits / str(batch)).unlink()
        (commits / f".{batch}.crc").unlink(missing_ok=True)

    def rows(self) -> list[Row]:
        """The table's rows."""
        return self.server.rows(self.table)


def _updates(plan: LogicalPlan) -> bool:
    return plan.aggregation is not None and plan.aggregation.update
