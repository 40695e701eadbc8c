"""Numbered records through every kind of query and into every kind of store."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_server import REGION, bucket
from playground import Playground
from postgres_server import PASSWORD, PostgresServer

KEYS, WINDOW_MS, SPACE_MS, BEGIN_MS = 7, 10_000, 5, 1_767_225_600_000
BUCKET = "faults"
KEYED = "_totals"
COLUMNS = "n BIGINT, k VARCHAR, at BIGINT"


@dataclass(frozen=True)
class Places:
    """Where things are: two topics that are fed, and what queries write.

    Attributes:
        files: the entity in the store of S3, a prefix of the bucket's keys.
        shards: the stream of Kinesis.
        back: the topic that the stream is copied to.
    """

    numbers: str
    others: str
    kept: str
    once: str
    windows: str
    joined: str
    files: str
    shards: str
    back: str


def declare(
    play: Playground,
    postgres: PostgresServer,
    aws: str,
    tables: Mapping[str, Mapping[str, Any]],
    *,
    copied: bool,
    keyed: bool,
) -> Places:
    """Create streams and start all queries; returns when they run.

    Args:
        play: where.
        postgres: a sink.
        aws: the address of S3 and Kinesis.
        tables: settings of the stores of tables, by kind.
        copied: whether a query reads the stream of Kinesis, too. Its reader is a Python process that has ten
            seconds to connect, by Spark's will: a machine that is busy enough never gets it to run.
        keyed: whether changelogs are written into the stores of tables, too.
    """
    numbers, others = (play.topic(name, 2) for name in ("numbers", "others"))
    play.stream("numbers", COLUMNS, topic=numbers, timestamp="at")
    play.stream("others", "n BIGINT, v VARCHAR, at BIGINT", topic=others, timestamp="at")
    _declare_stores(play, postgres, aws, tables)
    written = (
        f"{play.name}.{name}" for name in ("kept", "once", "windows", "joined", "files", "shards", "back")
    )
    places = Places(numbers, others, *written)
    statements, delivered = _statements(play, places), {}
    if not copied:
        del statements["back"]
    if not keyed:
        statements = {name: sql for name, sql in statements.items() if not name.endswith(KEYED)}
    for name, sql in statements.items():
        answer = play.http.put(f"/v1/queries/{play.name}_{name}", json={"sql": sql, **play.context})
        assert answer.status_code == 201, answer.text
    for name in statements:  # four cold drivers start at once
        made = play.wait(f"{play.name}_{name}", "running", "failed", seconds=300)
        assert made["status"]["state"] == "running", made["status"]
        delivered[name] = made["plan"]["delivery"]
    exactly = {name for name, delivery in delivered.items() if delivery == "exactly_once"}
    assert (
        exactly
        == {"once", "rows", "view", "files", "back", *tables, *(f"{kind}{KEYED}" for kind in tables)}
        & statements.keys()
    ), delivered
    return places


def _declare_stores(
    play: Playground, postgres: PostgresServer, aws: str, tables: Mapping[str, Mapping[str, Any]]
) -> None:
    play.sql(
        f"CREATE STORE {play.name}_pg WITH ('type'=POSTGRESQL, 'uris'='postgresql://127.0.0.1:{postgres.port}/shop',"
        f" 'tls.disabled'=TRUE, 'postgres.username'='shop', 'postgres.password'='{PASSWORD}')"
    )
    bucket(aws, BUCKET)
    access = {"region": REGION, "endpoint_url": aws, "access_key_id": "LOCAL", "secret_access_key": "local"}
    settings = {"s3": access | {"bucket": BUCKET}, "kinesis": access, **tables}
    for kind, given in settings.items():
        answer = play.http.put(f"/v1/stores/{play.name}_{kind}", json={kind: given})
        assert answer.json()["status"]["state"] == "ready", answer.text


def _statements(play: Playground, places: Places) -> dict[str, str]:
    """The queries by name; those that share a driver die and rise together."""
    table = f"'store'='{play.name}_pg', 'postgresql.schema.name'='{play.name}'"
    files = f"'store'='{play.name}_s3', 'topic'='{places.files}', 's3.interval.millis'=1000"
    shards = f"'store'='{play.name}_kinesis', 'topic'='{places.shards}', 'topic.shards'=2"
    lake = f"'store'='{play.name}_iceberg_rest', 'iceberg.namespace'='faults', 'iceberg.interval.millis'=1000"
    house = f"'store'='{play.name}_clickhouse'"
    flake = f"'store'='{play.name}_snowflake', 'snowflake.buffer.millis'=1000"
    exactly = "'delivery.guarantee'='exactly_once'"
    back = f"'topic'='{places.back}', 'topic.partitions'=2, 'topic.replicas'=1, {exactly}"
    shared = "QUERY WITH ('query.driver'='shared')"
    return {
        "filter": f"CREATE STREAM kept WITH ('topic'='{places.kept}') AS SELECT n, k FROM numbers WHERE n % 3 <> 0",
        "once": f"CREATE STREAM once WITH ('topic'='{places.once}', {exactly}) AS SELECT n, k FROM numbers {shared}",
        "rows": f"CREATE STREAM written WITH ({table}) AS SELECT n, k FROM numbers {shared}",
        "window": f"CREATE CHANGELOG windows WITH ('topic'='{places.windows}') AS SELECT window_start, k, "
        "count(*) AS c, sum(n) AS s FROM TUMBLE(numbers, SIZE 10 SECONDS) GROUP BY window_start, window_end, k "
        + shared,
        "join": f"CREATE STREAM joined WITH ('topic'='{places.joined}') AS SELECT a.n AS n, b.v AS v "
        "FROM numbers a JOIN others b WITHIN 1 MINUTES ON a.n = b.n",
        "view": "CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS c, sum(n) AS s FROM numbers GROUP BY k",
        "files": f"CREATE STREAM files WITH ({files}) AS SELECT n, k FROM numbers {shared}",
        "shards": f"CREATE STREAM shards WITH ({shards}) AS SELECT n, k FROM numbers WHERE n % 5 = 0 {shared}",
        "iceberg_rest": f"CREATE STREAM lake WITH ({lake}) AS SELECT n, k FROM numbers {shared}",
        "clickhouse": f"CREATE STREAM house WITH ({house}) AS SELECT n, k FROM numbers {shared}",
        "snowflake": f"CREATE STREAM flake WITH ({flake}) AS SELECT n, k FROM numbers WHERE n % 5 = 0 {shared}",
        **{
            f"{kind}{KEYED}": f"CREATE CHANGELOG {name} WITH ({properties}) AS SELECT k, count(*) AS c, "
            f"sum(n) AS s FROM numbers WHERE k IS NOT NULL GROUP BY k {shared}"
            for kind, name, properties in (
                ("iceberg_rest", "lake_totals", lake),
                ("clickhouse", "house_totals", house),
                ("snowflake", "flake_totals", flake),
            )
        },
        "back": f"CREATE STREAM back WITH ({back}) AS SELECT n, k FROM shards "
        f"WITH ('starting.position'='earliest') {shared}",
    }


class SteadyFeed:
    """Produces numbers at a steady pace until told to stop; each once, whatever happens to the broker."""

    def __init__(self, kafka: str, places: Places, per_second: int) -> None:
        self._kafka, self._places, self._pace = kafka, places, per_second
        self._over = threading.Event()
        self.sent = 0
        self.trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._produce()
        except BaseException as error:  # told by ``stop``
            self.trouble = error

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": self._kafka,
                "enable.idempotence": True,
                "linger.ms": 20,
                "message.timeout.ms": 600_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        step = max(1, self._pace // 20)
        while not self._over.wait(0.05):
            if len(producer) > 50_000:
                producer.poll(0.1)
                continue
            for n in range(self.sent, self.sent + step):
                at, key = BEGIN_MS + n * SPACE_MS, str(n)
                number = {"n": n, "k": f"k{n % KEYS}", "at": at}
                producer.produce(self._places.numbers, json.dumps(number), key=key)
                if n % 5 == 0:
                    other = {"n": n, "v": f"v{n}", "at": at}
                    producer.produce(self._places.others, json.dumps(other), key=key)
            self.sent += step
            producer.poll(0)
        left = producer.flush(300)
        assert left == 0, f"{left} records could not be produced"

    def stop(self) -> int:
        """End; how many numbers there are."""
        self._over.set()
        self._thread.join(330)
        if self.trouble is not None:
            raise self.trouble
        return self.sent
