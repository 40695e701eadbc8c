"""Numbered records through every kind of query, and what must have come of them in the end."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from playground import Playground
from postgres_server import PASSWORD, PostgresServer

KEYS, WINDOW_MS, SPACE_MS, BEGIN_MS = 7, 10_000, 5, 1_767_225_600_000
COLUMNS = "n BIGINT, k VARCHAR, at BIGINT"


@dataclass(frozen=True)
class Topics:
    """Names of the topics: two that are fed, four that queries write."""

    numbers: str
    others: str
    kept: str
    once: str
    windows: str
    joined: str


def declare(play: Playground, postgres: PostgresServer) -> Topics:
    """Create streams and start all six queries; returns when they run."""
    numbers, others = (play.topic(name, 2) for name in ("numbers", "others"))
    play.stream("numbers", COLUMNS, topic=numbers, timestamp="at")
    play.stream("others", "n BIGINT, v VARCHAR, at BIGINT", topic=others, timestamp="at")
    play.sql(
        f"CREATE STORE {play.name}_pg WITH ('type'=POSTGRESQL, 'uris'='postgresql://127.0.0.1:{postgres.port}/shop',"
        f" 'tls.disabled'=TRUE, 'postgres.username'='shop', 'postgres.password'='{PASSWORD}')"
    )
    topics = Topics(numbers, others, *(f"{play.name}.{t}" for t in ("kept", "once", "windows", "joined")))
    table = f"'store'='{play.name}_pg', 'postgresql.schema.name'='{play.name}'"
    exactly = "'delivery.guarantee'='exactly_once'"
    statements = {
        "filter": f"CREATE STREAM kept WITH ('topic'='{topics.kept}') AS SELECT n, k FROM numbers WHERE n % 3 <> 0",
        "once": f"CREATE STREAM once WITH ('topic'='{topics.once}', {exactly}) AS SELECT n, k FROM numbers",
        "rows": f"CREATE STREAM written WITH ({table}) AS SELECT n, k FROM numbers",
        "window": f"CREATE CHANGELOG windows WITH ('topic'='{topics.windows}') AS SELECT window_start, k, "
        "count(*) AS c, sum(n) AS s FROM TUMBLE(numbers, SIZE 10 SECONDS) GROUP BY window_start, window_end, k",
        "join": f"CREATE STREAM joined WITH ('topic'='{topics.joined}') AS SELECT a.n AS n, b.v AS v "
        "FROM numbers a JOIN others b WITHIN 1 MINUTES ON a.n = b.n",
        "view": "CREATE MATERIALIZED VIEW totals AS SELECT k, count(*) AS c, sum(n) AS s FROM numbers GROUP BY k",
    }
    delivered = {}
    for name in ("once", "rows", "window"):  # these die and rise together
        statements[name] += " QUERY WITH ('query.driver'='shared')"
    for name, sql in statements.items():
        answer = play.http.put(f"/v1/queries/{play.name}_{name}", json={"sql": sql, **play.context})
        assert answer.status_code == 201, answer.text
    for name in statements:  # four cold drivers start at once
        made = play.wait(f"{play.name}_{name}", "running", "failed", seconds=300)
        assert made["status"]["state"] == "running", made["status"]
        delivered[name] = made["plan"]["delivery"]
    assert {n for n, d in delivered.items() if d == "exactly_once"} == {"once", "rows", "view"}, delivered
    return topics


class SteadyFeed:
    """Produces numbers at a steady pace until told to stop; each once, whatever happens to the broker."""

    def __init__(self, kafka: str, topics: Topics, per_second: int) -> None:
        self._kafka, self._topics, self._pace = kafka, topics, per_second
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
                producer.produce(self._topics.numbers, json.dumps(number), key=key)
                if n % 5 == 0:
                    other = {"n": n, "v": f"v{n}", "at": at}
                    producer.produce(self._topics.others, json.dumps(other), key=key)
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


def read_topic(kafka: str, topic: str) -> Iterator[tuple[bytes | None, Any]]:
    """Key and value of all that is on a topic now, of transactions only what was committed."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    with contextlib.closing(consumer):
        found = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in found])
        left, deadline = set(found), time.monotonic() + 60
        while left:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            for message in consumer.consume(1000, 0.2):
                if message.error():
                    left.discard(message.partition())
                    continue
                left.add(message.partition())
                value = message.value()
                yield message.key(), json.loads(value) if value is not None else None


@dataclass
class Oracle:
    """What must be where, from the numbers alone."""

    count: int
    kafka: str
    topics: Topics
    play: Playground
    postgres: PostgresServer

    def faults(self) -> list[str]:
        """What is not as it must be; empty in the end."""
        all_numbers = Counter(range(self.count))
        checks = {
            "input": lambda: _both(all_numbers, self._numbers(self.topics.numbers), once=True),
            "filter": lambda: _both(
                Counter(n for n in all_numbers if n % 3), self._numbers(self.topics.kept), once=False
            ),
            "once": lambda: _both(all_numbers, self._numbers(self.topics.once), once=True),
            "rows": lambda: _both(all_numbers, self._rows(), once=True),
            "join": lambda: _both(
                Counter((n, f"v{n}") for n in range(0, self.count, 5)), self._joined(), once=False
            ),
            "window": lambda: _state(self._windows(), self._upserted()),
            "view": lambda: _state(self._totals(), self._viewed()),
        }
        return [f"{name}: {said}" for name, check in checks.items() if (said := check())]

    def _numbers(self, topic: str) -> Counter[Any]:
        return Counter(value["n"] for _, value in read_topic(self.kafka, topic))

    def _joined(self) -> Counter[Any]:
        return Counter((v["n"], v["v"]) for _, v in read_topic(self.kafka, self.topics.joined))

    def _rows(self) -> Counter[Any]:
        with self.postgres.connect() as connection:
            found = connection.execute(f"SELECT n, count(*) FROM {self.play.name}.written GROUP BY n")
            return Counter(dict(found.fetchall()))

    def _windows(self) -> dict[Any, Any]:
        wanted: dict[Any, list[int]] = {}
        for n in range(self.count):
            one = wanted.setdefault(((n * SPACE_MS) // WINDOW_MS, f"k{n % KEYS}"), [0, 0])
            one[0] += 1
            one[1] += n
        return {key: tuple(value) for key, value in wanted.items()}

    def _upserted(self) -> dict[Any, Any]:
        from datetime import UTC, datetime

        found = {}
        for key, value in read_topic(self.kafka, self.topics.windows):
            assert value is not None, f"window {key!r} was taken back"
            start = datetime.fromisoformat(value["window_start"].replace(" ", "T")).replace(tzinfo=UTC)
            number = (int(start.timestamp() * 1000) - BEGIN_MS) // WINDOW_MS
            found[(number, value["k"])] = (value["c"], value["s"])
        return found

    def _totals(self) -> dict[Any, Any]:
        parts = {f"k{i}": range(i, self.count, KEYS) for i in range(KEYS)}
        return {key: (len(part), sum(part)) for key, part in parts.items() if len(part)}

    def _viewed(self) -> dict[Any, Any]:
        rows = self.play.sql("SELECT k, c, s FROM totals")["results"][0]["rows"]
        return {k: (int(c), int(s)) for k, c, s in rows}


def _both(wanted: Counter[Any], found: Counter[Any], *, once: bool) -> str:
    missing, more = sorted(wanted - found), sorted(found - wanted)
    strange = sorted(set(found) - set(wanted))
    said = []
    if missing:
        said.append(f"{len(missing)} missing, such as {missing[:5]}")
    if strange:
        said.append(f"{len(strange)} that nobody wrote, such as {strange[:5]}")
    if once and more:
        said.append(f"{len(more)} more than once, such as {more[:5]}")
    return "; ".join(said)


def _state(wanted: dict[Any, Any], found: dict[Any, Any]) -> str:
    if wanted == found:
        return ""
    wrong = [(key, wanted.get(key), found.get(key)) for key in sorted({*wanted, *found}, key=str)]
    wrong = [one for one in wrong if one[1] != one[2]]
    return f"{len(wrong)} of {len(wanted)} groups are wrong (key, wanted, found), such as {wrong[:3]}"
