"""SQL in, records on the sink topic out: the job this product exists for."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

pytestmark = [pytest.mark.stack]

PAGEVIEWS = "viewtime BIGINT, userid VARCHAR, pageid VARCHAR"
USERS = "registertime BIGINT, userid VARCHAR, regionid VARCHAR, gender VARCHAR"


def view(number: int, page: str = "Page_1", user: str = "User_1", at: int | None = None) -> dict[str, Any]:
    return {"viewtime": at or int(time.time() * 1000) + number, "userid": user, "pageid": page}


@pytest.mark.core
def test_a_filter_runs_in_real_time_mode_and_infers_its_topic(play: Any) -> None:
    topic = play.topic("pageviews", partitions=2)
    play.stream("pageviews", PAGEVIEWS, topic)
    query = play.run(
        "filter",
        "CREATE STREAM filtered AS SELECT viewtime, upper(userid) AS userid, pageid FROM pageviews "
        "WHERE pageid <> 'Page_7';",
    )
    assert query["status"]["state"] == "running", query["status"]
    assert query["plan"]["mode"] == "realtime", query["plan"]["mode_reason"]
    assert query["effective"]["topic.partitions"] == {
        "value": 2,
        "origin": "left_most_source",
        "from": f"{play.name}.public.pageviews",
    }
    assert query["effective"]["topic.replicas"]["value"] == 1
    play.produce(topic, [view(i, f"Page_{i % 10}") for i in range(100)])
    found = play.consume("filtered", 90)
    assert {r["pageid"] for r in found} == {f"Page_{i}" for i in range(10) if i != 7}
    assert {r["userid"] for r in found} == {"USER_1"}
    assert play.http.delete("/v1/stores/nowhere").status_code == 404


@pytest.mark.core
def test_a_within_join_gives_pairs_inside_the_interval(play: Any, eventually: Any) -> None:
    views, users = (
        play.stream("pageviews", PAGEVIEWS, timestamp="viewtime"),
        play.stream("users", USERS, timestamp="registertime"),
    )
    sink = f"{play.name}.enriched"
    query = play.run(
        "enrich",
        f"CREATE STREAM enriched WITH ('topic'='{sink}') AS "
        "SELECT p.userid AS userid, p.pageid, u.regionid, u.gender FROM pageviews p "
        "JOIN users u WITHIN 5 MINUTES ON p.userid = u.userid;",
    )
    assert query["status"]["state"] == "running", query["status"]
    assert query["plan"]["mode"] == "micro_batch"
    assert query["plan"]["joins"][0]["kind"] == "interval-join-stream-stream"
    now = int(time.time() * 1000)
    person = {"userid": "User_1", "regionid": "Region_1", "gender": "OTHER"}
    play.produce(users, [{**person, "registertime": now}, {**person, "registertime": now - 3_600_000}])
    play.produce(
        views, [view(0, at=now), view(0, "Page_2", at=now - 299_000), view(0, "Page_3", at=now - 301_000)]
    )
    found = play.consume(sink, 2)
    assert sorted(r["pageid"] for r in found) == ["Page_1", "Page_2"]
    assert set(found[0]) == {"userid", "pageid", "regionid", "gender"}
    # Kafka's own lag tools see it, as long as it is there.
    name = query["name"]
    for topic, count in ((views, 3), (users, 2)):
        eventually(lambda t=topic, n=count: read_to(play.kafka, name, t) == n, what="the group's offsets")
    assert play.http.delete(f"/v1/queries/{name}").status_code in (202, 204)
    eventually(lambda: read_to(play.kafka, name, views) is None, what="the end of the group")


def read_to(kafka: str, query: str, topic: str) -> int | None:
    """Offsets of the query's consumer group over all partitions; None without a group."""
    admin, group = AdminClient({"bootstrap.servers": kafka}), f"leatstream-{query}"
    if group not in [g.group_id for g in admin.list_consumer_groups().result(10).valid]:
        return None
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = asked[group].result(10).topic_partitions
    return sum(max(0, p.offset) for p in places if p.topic == topic)


def test_insert_into_union_all_and_a_sub_select(play: Any) -> None:
    left, right = play.stream("a", "n BIGINT, s VARCHAR"), play.stream("b", "n BIGINT, s VARCHAR")
    out = play.stream("out", "n BIGINT, s VARCHAR")
    query = play.run(
        "merge",
        "INSERT INTO out SELECT n, s FROM (SELECT n * 10 AS n, CASE WHEN n > 1 THEN 'big' ELSE 'small' END AS s "
        "FROM a) x UNION ALL SELECT n, CAST(n AS VARCHAR) FROM b",
    )
    assert query["status"]["state"] == "running", query["status"]
    play.produce(left, [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}])
    play.produce(right, [{"n": 7, "s": "z"}])
    found = play.consume(out, 3)
    assert sorted((r["n"], r["s"]) for r in found) == [(7, "7"), (10, "small"), (20, "big")]


@pytest.mark.core
def test_stop_start_and_restart_lose_nothing(play: Any, eventually: Any) -> None:
    topic, sink = play.stream("numbers", "n BIGINT"), f"{play.name}.copy"
    name = f"{play.name}_copy"
    play.run("copy", f"CREATE STREAM copied WITH ('topic'='{sink}') AS SELECT n FROM numbers")
    play.produce(topic, [{"n": i} for i in range(100)])
    play.consume(sink, 100)
    assert play.http.patch(f"/v1/queries/{name}", json={"desired_state": "stopped"}).status_code == 200
    play.wait(name, "stopped")
    play.produce(topic, [{"n": i} for i in range(100, 200)])
    assert play.http.patch(f"/v1/queries/{name}", json={"desired_state": "running"}).status_code == 200
    play.wait(name, "running")
    assert {r["n"] for r in play.consume(sink, 200, distinct="n")} == set(range(200))
    attempt = play.query(name)["status"]["job"]["attempt"]
    assert play.http.post(f"/v1/queries/{name}:restart").status_code == 202
    eventually(lambda: play.query(name)["status"]["job"]["attempt"] > attempt, what="a new attempt")
    play.produce(topic, [{"n": i} for i in range(200, 300)])
    found = play.consume(sink, 300, seconds=120, distinct="n")
    assert {r["n"] for r in found} == set(range(300))


def test_undecodable_records_fail_the_job_or_are_skipped_and_counted(play: Any, eventually: Any) -> None:
    topic = play.stream("strict", "n BIGINT NOT NULL")
    sink = f"{play.name}.lenient_out"
    play.run(
        "lenient",
        f"CREATE STREAM lenient WITH ('topic'='{sink}') AS SELECT n FROM strict "
        "WITH ('source.deserialization.error.handling'='IGNORE')",
    )
    play.run("terminates", f"CREATE STREAM t WITH ('topic'='{play.name}.t') AS SELECT n FROM strict")
    play.produce(topic, [{"n": 1}, b"not json at all", {"n": "text"}, {"other": 1}, {"n": 2}])
    assert sorted(r["n"] for r in play.consume(sink, 2)) == [1, 2]
    failed = play.wait(f"{play.name}_terminates", "failed")
    assert failed["status"]["error"]["code"] == "undecodable-record"
    assert "not json at all" not in str(failed["status"])
    for why in ("it is not JSON", 'column n is BIGINT, the record has the string "text"', "is missing"):
        failed = play.wait(f"{play.name}_terminates", "failed")
        error = failed["status"]["error"]
        assert why in error["detail"]
        record = ":".join(error["record"][part] for part in ("entity", "partition", "offset"))
        assert f"leat query restart --skip-record {record}" in error["hint"]
        body = {"failed_by": record, "skip_record": True}
        restarted = play.http.post("/v1/queries:restart", json=body).json()["queries"]
        assert restarted == [f"{play.name}_terminates"]
    assert {r["n"] for r in play.consume(f"{play.name}.t", 2, distinct="n")} == {1, 2}
    assert len(play.query(f"{play.name}_terminates")["status"]["skipped_records"]) == 3
    eventually(
        lambda: play.query(f"{play.name}_lenient")["status"]["metrics"].get("skipped_rows_total") == 3,
        what="three skipped records",
    )


@pytest.mark.core
def test_a_dropped_source_topic_fails_the_query_with_its_cause(play: Any) -> None:
    topic = play.stream("going", "n BIGINT")
    play.run("orphan", f"CREATE STREAM orphaned WITH ('topic'='{play.name}.orphaned') AS SELECT n FROM going")
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": play.kafka})
    for future in admin.delete_topics([topic]).values():
        future.result(30)
    failed = play.wait(f"{play.name}_orphan", "failed")
    assert failed["status"]["error"]["code"] == "source-gone"
    assert topic in failed["status"]["error"]["detail"]
