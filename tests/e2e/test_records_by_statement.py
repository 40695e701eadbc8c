"""Statements on a running stack and a real broker, without a query."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.core]


def printed(play: Any, topic: str) -> list[tuple[str | None, str | None]]:
    """Key and value of every record, in the order of their offsets."""
    text = f"PRINT ENTITY \"{topic}\" WITH ('from_beginning', 'limit'=100)"
    rows = play.sql(text)["results"][0]["rows"]
    return [(row[3], row[4]) for row in sorted(rows, key=lambda r: (r[0], r[1]))]


def test_values_are_on_the_topic_when_the_statement_answers(play: Any) -> None:
    topic = play.stream(
        "people",
        "id VARCHAR NOT NULL, n BIGINT, d DOUBLE, at TIMESTAMP_LTZ, tags ARRAY<VARCHAR>, st STRUCT<a INTEGER>",
        key_format="primitive",
        key_columns="id",
    )
    done = play.sql(
        "INSERT INTO people VALUES"
        " ('ü', 9007199254740993, 1e7, TIMESTAMP_LTZ '2026-01-02 03:04:05.5+01:00', ARRAY['x', NULL], STRUCT(1)),"
        " ('b', NULL, NULL, NULL, NULL, NULL); INSERT INTO people (n, id) VALUES (1, 'c')"
    )
    assert [r["object"]["records"] for r in done["results"]] == [2, 1]
    assert printed(play, topic) == [
        (
            "ü",
            '{"id":"ü","n":9007199254740993,"d":1.0E7,"at":"2026-01-02 02:04:05.5Z","tags":["x",null],"st":{"a":1}}',
        ),
        ("b", '{"id":"b","n":null,"d":null,"at":null,"tags":null,"st":null}'),
        ("c", '{"id":"c","n":1,"d":null,"at":null,"tags":null,"st":null}'),
    ]


def test_a_faulty_row_writes_nothing(play: Any) -> None:
    topic = play.stream("numbers", "n INTEGER NOT NULL")
    body = play.refused("INSERT INTO numbers VALUES (1), (2147483648), (NULL)")
    assert (body["code"], len(body["errors"])) == ("type-mismatch", 2)
    assert printed(play, topic) == []


def test_columns_are_generated_from_what_was_inserted(play: Any) -> None:
    topic = play.topic("Raw")
    for document in ({"Id": 1, "st": {"a": [1.5]}}, {"Id": None, "ok": True}):
        text = json.dumps(document)
        play.sql(f"""INSERT INTO ENTITY "{topic}" VALUE('{text}') WITH ('key' = 'k')""")
    assert printed(play, topic)[0] == ("k", '{"Id": 1, "st": {"a": [1.5]}}')
    found = play.sql(f'GENERATE COLUMNS FROM ENTITY "{topic}"')["results"][0]
    assert [row[:2] for row in found["rows"]] == [
        ["Id", "BIGINT"],
        ["st", "STRUCT<a ARRAY<DOUBLE>>"],
        ["ok", "BOOLEAN"],
    ]
    template = play.sql(f'GENERATE TEMPLATE FOR ENTITY "{topic}"')["results"][0]["rows"][0][0]
    play.sql(template)
    described = play.sql("DESCRIBE STREAM raw")["results"][0]["rows"]
    assert [row[0] for row in described] == ["Id", "st", "ok"]


def test_what_exists_is_replaced_and_changed_in_place(play: Any) -> None:
    topic = play.stream("s", "n BIGINT")
    play.sql(
        f"CREATE OR REPLACE STREAM s (n BIGINT COMMENT 'number', t VARCHAR) COMMENT 'things'"
        f" WITH ('topic'='{topic}', 'value.format'='json')"
    )
    described = play.sql("DESCRIBE STREAM s")["results"][0]
    assert (described["object"]["comment"], described["rows"][0][3]) == ("things", "number")

    entity = f'"{topic}"'
    play.sql(f"UPDATE ENTITY {entity} WITH ('kafka.topic.retention.ms'='60000')")
    play.sql(f"UPDATE ENTITY {entity} WITH ('kafka.partitions'=3)")
    live = dict(play.sql(f"DESCRIBE ENTITY {entity}")["results"][0]["rows"])
    assert (live["topic.partitions"], live["retention.ms"]) == ("3", "60000")
    assert play.refused(f"UPDATE ENTITY {entity} WITH ('kafka.partitions'=1)")["code"] == "store-rejected"

    state = play.http.get(f"/v1/stores/{play.name}").json()
    assert state["status"]["state"] == "ready"
    play.sql(f"UPDATE STORE {play.name} WITH ('uris'='127.0.0.1:1')")
    assert play.http.get(f"/v1/stores/{play.name}").json()["status"]["state"] == "errored"
    play.sql(f"UPDATE STORE {play.name} WITH ('uris'='{play.kafka}')")
    assert play.http.get(f"/v1/stores/{play.name}").json()["status"]["state"] == "ready"
