"""Records of Kafka beside their value: headers, and how large they may be."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from deadlines import patient
from short_form import later

pytestmark = [pytest.mark.stack]
LARGE = 2_000_000


def _produce(play: Any, topic: str, value: Any, headers: Any = None, partition: int = 0) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": play.kafka, "message.max.bytes": 10_000_000})
    producer.produce(topic, json.dumps(value).encode(), headers=headers, partition=partition)
    assert producer.flush(30) == 0


def _topic(play: Any, name: str, **configs: str) -> str:
    full = f"{play.name}.{name}"
    body = {"kafka": {"partitions": 1, "replicas": 1, "configs": configs}}
    answer = play.http.put(f"/v1/stores/{play.name}/entities/{full}", json=body)
    assert answer.status_code == 201, answer.text
    return full


@pytest.mark.core
@pytest.mark.parametrize("mode", later(["realtime", "micro_batch"], ["micro_batch"]))
def test_headers_are_read_and_printed(play: Any, mode: str) -> None:
    topic, out = play.stream("calls", "n BIGINT"), play.topic("traces")
    headers = [("trace", b"one"), ("trace", b"two"), ("empty", None), ("raw", b"\xff")]
    _produce(play, topic, {"n": 1}, headers)
    _produce(play, topic, {"n": 2})
    sql = (
        f"CREATE STREAM traces WITH ('topic'='{out}') AS SELECT n, decode(rowheaders()['trace'], 'UTF-8') AS trace,"
        " cardinality(rowheaders()) AS headers, rowheaders(calls)['raw'] AS raw, rowmeta()->offset AS place,"
        " rowmeta()->timestamp_type AS kind FROM calls WITH ('starting.position'='earliest')"
        f" QUERY WITH ('mode'='{mode}')"
    )
    assert play.run("traces", sql)["status"]["job"]["mode"] == mode
    assert sorted(play.consume(out, 2), key=lambda row: row["n"]) == [
        {"n": 1, "trace": "two", "headers": 3, "raw": "/w==", "place": 0, "kind": 0},
        {"n": 2, "trace": None, "headers": None, "raw": None, "place": 1, "kind": 0},
    ]
    path = f"/v1/stores/{play.name}/entities/{topic}/records"
    told = play.http.get(path, params={"from": "beginning", "limit": 1, "timeout": "10s"})
    (record,) = [json.loads(line) for line in told.text.splitlines() if line.strip()]
    assert [(h["name"], h["value"]) for h in record["headers"]] == [
        ("trace", "one"),
        ("trace", "two"),
        ("empty", None),
        ("raw", "/w=="),
    ]


def _headers(play: Any, topic: str, count: int) -> dict[int, Any]:
    """Headers of a topic's first committed records, by their ``n``."""
    from confluent_kafka import Consumer

    settings = {"group.id": f"{topic}.read", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": play.kafka, "isolation.level": "read_committed", **settings})
    consumer.subscribe([topic])
    found: dict[int, Any] = {}
    end = time.monotonic() + patient(60)
    try:
        while len(found) < count:
            assert time.monotonic() < end, f"{topic} has {found}"
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                value = json.loads(message.value())
                assert value.keys() == {"n"}
                found[value["n"]] = message.headers()
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("mode", "guarantee"),
    [
        ("realtime", "at_least_once"),
        pytest.param("micro_batch", "at_least_once", marks=pytest.mark.long),
        ("micro_batch", "exactly_once"),
    ],
)
def test_headers_are_written(play: Any, mode: str, guarantee: str) -> None:
    """From a statement through a query to a consumer, and from what the query wrote through another."""
    play.stream("calls", "h MAP<VARCHAR, BYTES>, n BIGINT", headers_column="h")
    play.sql("INSERT INTO calls VALUES (MAP['trace', X'c3bc', 'raw', X'ff', 'none', NULL], 1), (NULL, 2)")
    out = play.topic("made")
    sql = (
        f"CREATE STREAM made WITH ('topic'='{out}', 'headers.column'='h', 'delivery.guarantee'='{guarantee}') AS"
        " SELECT n, h FROM calls WITH ('starting.position'='earliest')"
        f" QUERY WITH ('mode'='{mode}')"
    )
    assert play.run("made", sql)["status"]["job"]["mode"] == mode
    given = {"trace": "ü".encode(), "raw": b"\xff", "none": None}
    found = _headers(play, out, 2)
    assert dict(found[1]) == given
    assert found[2] is None
    if guarantee == "exactly_once":
        return
    again = play.topic("again")
    sql = (
        f"CREATE STREAM again WITH ('topic'='{again}') AS SELECT n, decode(h['trace'], 'UTF-8') AS trace,"
        f" cardinality(h) AS headers FROM made WITH ('starting.position'='earliest') QUERY WITH ('mode'='{mode}')"
    )
    play.run("again", sql)
    read = {row["n"]: (row["trace"], row["headers"]) for row in play.consume(again, 2, distinct="n")}
    assert read == {1: ("ü", 3), 2: (None, None)}


@pytest.mark.core
def test_large_records_pass_where_the_topics_take_them(play: Any) -> None:
    """Twice the size that the clients take by default; a topic that does not take it is told of."""
    topic = _topic(play, "big", **{"max.message.bytes": "4000000"})
    play.stream("big", "n BIGINT, t VARCHAR", topic=topic)
    out = _topic(play, "out", **{"max.message.bytes": "4000000"})
    _produce(play, topic, {"n": 1, "t": "x" * LARGE})
    source = "big WITH ('starting.position'='earliest')"
    sql = f"CREATE STREAM passed WITH ('topic'='{out}') AS SELECT n, t FROM {source}"
    play.run("passed", sql)
    ((n, t),) = [(row["n"], row["t"]) for row in play.consume(out, 1)]
    assert (n, len(t)) == (1, LARGE)
    small = play.topic("small")
    # Real-time mode tells of a refused record with the next one, or when its batch ends after a minute.
    mode = "QUERY WITH ('mode'='micro_batch')"
    sql = f"CREATE STREAM refused WITH ('topic'='{small}') AS SELECT n, t FROM {source} {mode}"
    play.run("refused", sql)
    error = play.wait(f"{play.name}_refused", "failed")["status"]["error"]
    assert error["retryable"] is False
    assert small in error["detail"]
    assert "larger than topic" in error["detail"]
    assert "xxxx" not in json.dumps(error)


@pytest.mark.core
def test_partitions_that_are_added_are_read_from_their_first_record(play: Any) -> None:
    """In micro-batches; a real-time driver is shown it in ``integration/jobs/test_drivers``."""
    topic, out = play.stream("numbers", "n BIGINT"), play.topic("kept")
    sql = f"CREATE STREAM kept WITH ('topic'='{out}') AS SELECT n FROM numbers QUERY WITH ('mode'='micro_batch')"
    play.run("kept", sql)
    _produce(play, topic, {"n": 0})
    play.consume(out, 1)
    body = {"kafka": {"partitions": 3, "replicas": 1}}
    answer = play.http.put(f"/v1/stores/{play.name}/entities/{topic}", json=body)
    assert answer.status_code == 200, answer.text
    for n in range(1, 7):
        _produce(play, topic, {"n": n}, partition=n % 3)
    rows = play.consume(out, 7, distinct="n")
    assert {row["n"] for row in rows} == set(range(7))
    assert play.query(f"{play.name}_kept")["status"]["job"]["attempt"] == 1


def test_empty_values_and_keys_are_no_records_of_a_stream_and_end_nothing(play: Any) -> None:
    """Skipped and counted where that is asked for; an empty key is a key."""
    from confluent_kafka import Producer

    topic, out = play.topic("numbers"), play.topic("kept")
    columns = "n BIGINT, k VARCHAR"
    play.stream("numbers", columns, topic=topic, key_format="primitive", key_type="VARCHAR")
    source = "numbers WITH ('starting.position'='earliest', 'source.deserialization.error.handling'='IGNORE')"
    play.run(
        "kept",
        f"CREATE STREAM kept WITH ('topic'='{out}') AS SELECT n, rowkey() AS k FROM {source}",
        shared=True,
    )
    producer = Producer({"bootstrap.servers": play.kafka})
    for key, value in ((b"", b'{"n":1}'), (b"a", b""), (b"b", None), (None, b'{"n":2}')):
        producer.produce(topic, value, key=key)
    assert producer.flush(30) == 0
    assert sorted((row["n"], row["k"]) for row in play.consume(out, 2)) == [(1, ""), (2, None)]
