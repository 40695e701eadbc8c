"""A catalog with something of everything, behind the real REST application on a free port: for the web console."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import fakes
import httpx2
import uvicorn

from leatstream import http_server
from leatstream.connectors.entities import Entity, Record
from leatstream.model.objects import QueryState
from leatstream.rest.app import create_app
from leatstream.services.queries.save import note_event

LONG = "orders_of_all_shops_in_every_region_joined_with_their_customers_and_payments_of_the_last_30_days"
KAFKA = {"kafka": {"bootstrap_servers": "broker-1.example.com:9092,broker-2.example.com:9092"}}
VIEWS = {
    "columns": [
        {"name": "viewtime", "type": "BIGINT", "not_null": True},
        {"name": "userid", "type": "VARCHAR", "comment": "who looked"},
        {"name": "pageid", "type": "VARCHAR"},
    ],
    "store": "kafka_store",
    "topic": "pageviews",
    "value_format": "json",
    "timestamp": "viewtime",
}
# What no double may become: 9007199254740993 is 2^53 + 1.
BIG = 9007199254740993


@dataclass
class ConsoleWorld:
    """A server for browsers, and what stands behind it."""

    url: str
    world: fakes.World

    def put(self, path: str, body: dict[str, Any]) -> None:
        """Create an object through the API."""
        answer = httpx2.put(
            self.url + path, json=body, headers=self.world.headers, timeout=30, trust_env=False
        )
        assert answer.status_code == 201, answer.text

    def set_status(self, query: str, **status: Any) -> None:
        """Have a query's job report this."""
        with self.world.env.open_unit() as unit:
            found = unit.queries.find(query)
            assert found is not None
            changed = replace(found, status=replace(found.status, **status))
            unit.queries.update(changed)
            note_event(unit, found, changed, self.world.env.clock.now())
            unit.commit()

    def fill(self) -> None:
        """Make stores, relations and queries, one of which has failed."""
        world = self.world
        for name in ("kafka_store", "archive"):
            self.put(f"/v1/stores/{name}", KAFKA)
        shape = {"topic.partitions": 3, "topic.replicas": 1}
        for entity in ("pageviews", "users", *(f"topic_{n:03}" for n in range(60))):
            world.cluster.entities[entity] = Entity(entity, shape)
        world.cluster.endless = True
        world.cluster.records["pageviews"] = [record(n) for n in range(40)]
        self.put("/v1/databases/demo", {"comment": "page views of the sample"})
        self.put("/v1/databases/demo/schemas/shop", {})
        self.put("/v1/relations/demo.public.pageviews", VIEWS)
        self.query(
            "views_of_b", "CREATE STREAM views_of_b AS SELECT * FROM pageviews WHERE userid = 'User_2'"
        )
        self.query(
            "views_of_c", "CREATE STREAM views_of_c AS SELECT * FROM views_of_b WHERE pageid = 'Page_3'"
        )
        self.query(LONG, f"CREATE STREAM {LONG} AS SELECT * FROM pageviews")
        now = world.env.clock.now()
        figures = {
            "input_rows_per_second": 412.5,
            "output_rows_per_second": 58.2,
            "processed_rows_per_second": 398.0,
            "state_rows": 12,
            "sources": [{"relation": "demo.public.pageviews", "entity": "pageviews", "lag": 120}],
        }
        self.set_status(
            "views_of_b", state=QueryState.RUNNING, since=now - timedelta(hours=3), metrics=figures
        )
        error = {
            "code": "undecodable-record",
            "detail": "Record pageviews:2:1041 is not JSON: it begins with 0x00.",
            "retryable": False,
            "hint": "Skip the record, or correct its producer",
            "record": {"entity": "pageviews", "partition": "2", "offset": "1041"},
        }
        self.set_status(LONG, state=QueryState.FAILED, since=now - timedelta(minutes=4), error=error)

    def shop(self) -> None:
        """Make a small shop, for the pictures of the documentation."""
        world, shape = self.world, {"topic.partitions": 3, "topic.replicas": 1}
        self.put("/v1/stores/kafka_store", KAFKA)
        self.put("/v1/databases/demo", {})
        columns = ("id BIGINT", "customer VARCHAR", "city VARCHAR", "amount DECIMAL(10, 2)")
        for topic in ("orders", "payments"):
            world.cluster.entities[topic] = Entity(topic, shape)
            listed = [dict(zip(("name", "type"), one.split(" ", 1), strict=True)) for one in columns]
            body = {"columns": listed, "store": "kafka_store", "topic": topic, "value_format": "json"}
            self.put(f"/v1/relations/demo.public.{topic}", body)
        now, rates = world.env.clock.now(), {"large_orders": 412.5, "orders_of_oslo": 96.0, "refunds": 12.0}
        self.query("large_orders", "CREATE STREAM large_orders AS SELECT * FROM orders WHERE amount > 1000")
        self.query(
            "orders_of_oslo", "CREATE STREAM orders_of_oslo AS SELECT * FROM large_orders WHERE city = 'Oslo'"
        )
        self.query("refunds", "CREATE STREAM refunds AS SELECT * FROM payments WHERE amount < 0")
        for name, rate in rates.items():
            figures = {"input_rows_per_second": rate, "processed_rows_per_second": rate}
            self.set_status(name, state=QueryState.RUNNING, since=now - timedelta(hours=3), metrics=figures)
        error = {
            "code": "undecodable-record",
            "detail": "Record payments:2:1041 is not JSON: it begins with 0x00.",
            "retryable": False,
            "hint": "Skip the record, or correct its producer.",
            "record": {"entity": "payments", "partition": "2", "offset": "1041"},
        }
        self.set_status("refunds", state=QueryState.FAILED, since=now - timedelta(minutes=4), error=error)

    def query(self, name: str, sql: str) -> None:
        """Create a query in demo.public."""
        context = {"database": "demo", "schema": "public", "store": "kafka_store"}
        self.put(f"/v1/queries/{name}", {"sql": sql, **context})


def record(number: int) -> Record:
    """A page view; the last one of ten has a value that is too large for a double."""
    value = {
        "viewtime": BIG if number % 10 == 9 else number,
        "userid": f"User_{number % 7}",
        "pageid": f"Page_{number}",
    }
    key = f"User_{number % 7}".encode()
    return Record(key, json.dumps(value).encode(), number % 3, number // 3, 1_764_000_000_000 + number, ())


@contextmanager
def console_world(directory: Path) -> Iterator[ConsoleWorld]:
    """Serve an empty catalog until the end of the block."""
    world = fakes.make_world(directory)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(http_server.config(create_app(world.env), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield ConsoleWorld(f"http://127.0.0.1:{listener.getsockname()[1]}", world)
    finally:
        world.cluster.endless = False
        server.should_exit = True
        thread.join(10)
        listener.close()
        world.units.close()
