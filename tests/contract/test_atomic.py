"""Texts that are kept whole or not at all, and what a caller's names mean by default."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

STORE = "CREATE STORE s WITH ('type'=KAFKA, 'uris'='h:1', 'tls.disabled'=TRUE)"
CHAIN = (
    "CREATE DATABASE two; USE DATABASE two; CREATE SCHEMA raw;"
    "CREATE STREAM raw.pv (viewtime BIGINT, userid VARCHAR)"
    " WITH ('store'='k', 'topic'='pageviews', 'value.format'='json');"
    "CREATE STREAM copy WITH ('store'='k') AS SELECT * FROM raw.pv;"
    "INSERT INTO copy SELECT * FROM demo.public.pageviews"
)


def _send(client: TestClient, sql: str, **more: Any) -> Any:
    body = {"sql": sql, "database": "demo", "atomic": True, **more}
    return client.post("/v1/statements", json=body)


def _names(client: TestClient, noun: str) -> list[str]:
    return [item.get("fqn") or item["name"] for item in client.get(f"/v1/{noun}").json()["items"]]


def _state(client: TestClient) -> dict[str, list[str]]:
    nouns = ("databases", "databases/demo/schemas", "stores", "relations", "queries", "secrets")
    return {noun: _names(client, noun) for noun in nouns}


def test_everything_is_kept_at_once(pageviews: TestClient) -> None:
    """Statements see what those before them made; the jobs may start only when all is kept."""
    answer = _send(pageviews, CHAIN)
    assert answer.status_code == 200, answer.text
    kinds = [(r["kind"], r["status"]) for r in answer.json()["results"]]
    assert kinds[-2:] == [("create_stream_as", "running"), ("insert_into", "running")]
    assert answer.json()["context"]["database"] == "two"
    assert _names(pageviews, "queries") == ["copy", "insert_into_copy"]
    assert _names(pageviews, "relations") == ["demo.public.pageviews", "two.public.copy", "two.raw.pv"]
    query = pageviews.get("/v1/queries/copy").json()
    assert (query["status"]["state"], query["sink"]) == ("pending", "two.public.copy")


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("DROP STREAM nowhere", "not-found"),
        ("CREATE DATABASE two", "already-exists"),
        ("INSERT INTO copy SELECT * FROM nowhere", "unknown-relation"),
        ("CREATE ENTITY fresh IN STORE k WITH ('topic.partitions'=1, 'topic.replicas'=1)", "unsupported"),
        ("UPDATE ENTITY pageviews IN STORE k WITH ('topic.partitions'=6)", "unsupported"),
        (
            "CREATE STREAM other (a BIGINT) WITH ('store'='k', 'topic'='fresh', 'value.format'='json',"
            " 'topic.partitions'=1, 'topic.replicas'=1)",
            "unsupported",
        ),
        ("INSERT INTO demo.public.pageviews VALUES (1, 'a')", "unsupported"),
        ("PRINT ENTITY pageviews IN STORE k", "unsupported"),
    ],
)
def test_nothing_is_kept(pageviews: TestClient, fresh: Any, last: str, code: str) -> None:
    """Whatever the last statement's fault: no object of those before it, no topic, no record is there."""
    before, topics = _state(pageviews), dict(fresh.cluster.entities)
    answer = _send(pageviews, f"{STORE}; {CHAIN}; {last}")
    assert answer.json()["code"] == code, answer.text
    if not last.startswith("PRINT"):
        assert answer.json()["results"] == []
    if code == "unsupported" and "ENTITY" in last.split()[:2] and last.split()[0] != "PRINT":
        assert "cannot be undone" in answer.json()["detail"]
    assert _state(pageviews) == before
    assert fresh.cluster.entities == topics
    assert fresh.cluster.records == {}


def test_without_atomic_what_ran_stays(pageviews: TestClient) -> None:
    """The same text, one by one: the failure leaves what came before it."""
    answer = _send(pageviews, "CREATE DATABASE one; DROP STREAM nowhere", atomic=False)
    assert answer.json()["code"] == "not-found"
    assert len(answer.json()["results"]) == 1
    assert "one" in _names(pageviews, "databases")


def test_a_store_with_a_secret_of_the_same_text(client: TestClient, fresh: Any) -> None:
    """The store is asked with the value that is not kept yet."""
    text = (
        "CREATE SECRET pw WITH ('type'=generic_string, 'secret_string'='hunter2');"
        "CREATE STORE s WITH ('type'=KAFKA, 'uris'='h:1', 'kafka.sasl.hash_function'=PLAIN,"
        " 'kafka.sasl.username'='u', 'kafka.sasl.password'=\"pw\")"
    )
    assert _send(client, f"{text}; DROP STREAM demo.a.b").status_code == 404
    assert (_names(client, "stores"), _names(client, "secrets")) == ([], [])
    assert _send(client, text).status_code == 200
    assert client.get("/v1/stores/s").json()["status"]["state"] == "ready"
    with fresh.env.open_unit(write=False) as unit:
        store = unit.stores.find("s")
    assert fresh.env.connect(store).config.sasl.password.get_secret_value() == "hunter2"


def test_changes_and_removals_wait_as_well(pageviews: TestClient) -> None:
    """UPDATE, DROP, OR REPLACE and a list in between see the state of the text, the world the old one."""
    assert (
        _send(pageviews, "CREATE STREAM c WITH ('store'='k') AS SELECT * FROM pageviews").status_code == 200
    )
    failing = (
        "TERMINATE QUERY c; DROP QUERY c; CREATE OR REPLACE DATABASE demo COMMENT 'new'; CREATE SCHEMA x;"
        "CREATE SCHEMA y; DROP SCHEMA demo.x; LIST SCHEMAS; DROP DATABASE nowhere"
    )
    assert _send(pageviews, failing).json()["code"] == "not-found"
    assert pageviews.get("/v1/queries/c").json()["desired_state"] == "running"
    assert pageviews.get("/v1/databases/demo").json()["comment"] is None
    kept = _send(pageviews, failing.removesuffix("; DROP DATABASE nowhere"))
    assert kept.status_code == 200, kept.text
    assert [row[1] for row in kept.json()["results"][-1]["rows"]] == ["public", "y"]
    assert pageviews.get("/v1/queries/c").json()["desired_state"] == "stopped"
    assert _names(pageviews, "databases/demo/schemas") == ["demo.public", "demo.y"]


def test_someone_else_was_faster(pageviews: TestClient, fresh: Any, monkeypatch: Any) -> None:
    """What was read has changed: the text runs again; each time anew: it is refused and nothing is kept."""
    from leatstream.services.staging import atomic

    real = atomic.keep
    times: list[int] = []
    stop = 0

    def late(env: Any, staging: Any) -> None:
        with fresh.env.open_unit() as unit:
            store = unit.stores.find("k")
            from dataclasses import replace

            meta = replace(store.meta, generation=store.meta.generation + 1)
            unit.stores.update(replace(store, meta=meta))
            unit.commit()
        times.append(1)
        if len(times) < stop:
            real(env, staging)
        else:
            monkeypatch.setattr(atomic, "keep", real)
            real(env, staging)

    for stop, code in ((99, 412), (2, 412)):
        times.clear()
        monkeypatch.setattr(atomic, "keep", late)
        answer = _send(
            pageviews, "CREATE SCHEMA a; CREATE STREAM c WITH ('store'='k') AS SELECT * FROM pageviews"
        )
        if stop == 99:
            assert (answer.status_code, len(times)) == (code, 3)
            assert _names(pageviews, "queries") == []
        else:
            assert answer.status_code == 200, answer.text
    assert _names(pageviews, "queries") == ["c"]


def test_what_others_do_elsewhere_does_not_matter(
    pageviews: TestClient, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries that others make and delete, and topics that they drop, are no reason to run the text again."""
    from leatstream.services.nouns.entity_drops import drop_unless_used
    from leatstream.services.staging import atomic

    real, times = atomic.keep, []

    def late(env: Any, staging: Any) -> None:
        times.append(1)
        other = f"other{len(times)}"
        text = f"CREATE STREAM {other} WITH ('store'='k') AS SELECT * FROM pageviews"
        monkeypatch.setattr(atomic, "keep", real)
        assert _send(pageviews, text).status_code == 200
        drop_unless_used(fresh.env, "k", other + "_gone", lambda: None)
        monkeypatch.setattr(atomic, "keep", late)
        real(env, staging)

    monkeypatch.setattr(atomic, "keep", late)
    answer = _send(
        pageviews, "CREATE SCHEMA a; CREATE STREAM c WITH ('store'='k') AS SELECT * FROM pageviews"
    )
    assert answer.status_code == 200, answer.text
    assert len(times) == 1


def test_set_default(pageviews: TestClient, fresh: Any) -> None:
    """It counts for this caller's later requests where they say nothing, and for nobody else."""
    text = "SET DEFAULT DATABASE demo; SET DEFAULT STORE k; LIST STREAMS"
    answer = pageviews.post("/v1/statements", json={"sql": text})
    assert answer.status_code == 200, answer.text
    later = pageviews.post("/v1/statements", json={"sql": "DESCRIBE STREAM pageviews; PRINT TOPIC pageviews"})
    assert later.status_code == 200, later.text
    shown = {"database": "demo", "schema": "public", "store": "k", "role": None}
    assert later.json()["context"] == shown
    verdict = pageviews.post("/v1/statements:validate", json={"sql": "DROP STREAM pageviews"})
    assert verdict.json()["valid"], verdict.text
    reader = {"Authorization": f"Bearer {fresh.reader_token}"}
    other = pageviews.post("/v1/statements", json={"sql": "DESCRIBE STREAM pageviews"}, headers=reader)
    assert other.json()["code"] == "unknown-relation"
    for wrong in ("SET DEFAULT STORE nowhere", "SET DEFAULT SCHEMA demo.nowhere", "SET x = 1"):
        assert pageviews.post("/v1/statements", json={"sql": wrong}).status_code >= 400


def test_all_faults_of_a_text(client: TestClient) -> None:
    """Each statement that cannot be read is told, with its place, and none has run."""
    answer = client.post("/v1/statements", json={"sql": "CREATE DATABASE a; CREATE; DROP x;\nMERGE a; LIST"})
    assert answer.status_code == 400
    found = [(e["code"], e["position"]["line"], e["sqlstate"]) for e in answer.json()["errors"]]
    assert found == [
        ("sql-syntax", 1, "42601"),
        ("sql-syntax", 1, "42601"),
        ("unsupported", 2, "0A000"),
        ("sql-syntax", 2, "42601"),
    ]
    assert client.get("/v1/databases").json()["items"] == []


def test_each_look_is_compared_once(pageviews: TestClient, fresh: Any) -> None:
    """Whatever many changes have read, it is read once when they are kept: nobody else can write then."""
    from leatstream.services.environment import Principal
    from leatstream.services.nouns.schemas import delete_schema, put_schema
    from leatstream.services.staging.staged_unit import staged

    ann, names = Principal("ann", "sysadmin"), [f"s{i}" for i in range(8)]
    for name in names:
        put_schema(fresh.env, ann, "demo", name)
    env, staging = staged(fresh.env)
    for name in names:
        with env.open_unit(write=False) as unit:
            assert len(unit.schemas.page(limit=100_000)) >= len(names) - names.index(name)
        delete_schema(env, ann, "demo", name)
    looks = [key for key in staging.read if key[:2] == ("schemas", "page")]
    assert looks == [("schemas", "page", "", "", 100_000)]


def test_a_drop_that_ends_does_not_hide_another(pageviews: TestClient, fresh: Any) -> None:
    """Two servers may end the same query: until both have, nobody may stand on the topic."""
    from leatstream.errors import CatalogError
    from leatstream.services.nouns.entity_drops import drop_unless_used, drops_seen, require_not_dropped

    with fresh.env.open_unit(write=False) as unit:
        relation = unit.relations.find("demo.public.pageviews")
    refused = []

    def declared() -> None:
        with fresh.env.open_unit(write=False) as unit:
            try:
                require_not_dropped(unit, fresh.env.clock.now(), relation, drops_seen(unit))
                refused.append(False)
            except CatalogError as error:
                refused.append(error.code == "stale")

    def slow() -> None:
        drop_unless_used(fresh.env, relation.store, relation.entity, declared, relation)
        declared()

    drop_unless_used(fresh.env, relation.store, relation.entity, slow, relation)
    declared()
    assert refused == [True, True, False]
