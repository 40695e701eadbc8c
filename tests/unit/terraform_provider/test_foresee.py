from __future__ import annotations

from typing import Any

import pytest

from leatstream_terraform.codec import UNKNOWN
from leatstream_terraform.foresee import Foreseen, qualify
from leatstream_terraform.schema import complete, load

RESOURCES = load().resources
CONTEXT = {"database": "demo", "schema": "public"}


def noted(**planned: Any) -> Foreseen:
    foreseen = Foreseen()
    for kind, value in planned.items():
        resource = RESOURCES[f"leatstream_{kind}"]
        foreseen.note(resource, complete(resource.attributes, value))
    return foreseen


def missing(sql: str, name: str, code: str = "unknown-relation", **more: Any) -> dict[str, Any]:
    at = sql.index(name)
    position = {"line": 1, "column": at + 1, "offset": at, "length": len(name)}
    return {"code": code, "detail": f"{name} does not exist", "position": position, **more}


STREAM = {"database": "demo", "schema": "public", "name": "Page Views", "store": "k", "value_format": "json"}


@pytest.mark.parametrize("name", ['"Page Views"', 'public."Page Views"', 'DEMO.public."Page Views"'])
def test_a_planned_stream_explains_that_it_is_missing(name: str) -> None:
    sql = f"CREATE STREAM x AS SELECT * FROM {name}"
    assert noted(stream=STREAM).explains(missing(sql, name), sql, CONTEXT)


def test_what_is_not_planned_is_not_explained() -> None:
    sql = "CREATE STREAM x AS SELECT * FROM demo.public.other"
    foreseen = noted(stream=STREAM, database={"name": "demo"}, schema={"database": "demo", "name": "public"})
    assert not foreseen.explains(missing(sql, "demo.public.other"), sql, CONTEXT)
    assert not foreseen.explains({"code": "sql-syntax", "detail": "Page Views"}, sql, CONTEXT)


def test_the_service_may_name_the_relation_itself() -> None:
    fault = {"code": "unknown-relation", "detail": "no", "fqn": 'demo.public."Page Views"'}
    assert noted(stream=STREAM).explains(fault, "", {})


def test_a_planned_database_explains_its_absence() -> None:
    fault = {"code": "not-found", "detail": "database demo does not exist."}
    assert noted(database={"name": "demo"}).explains(fault, "", CONTEXT)
    assert not noted(database={"name": "dem"}).explains(fault, "", CONTEXT)


def test_a_planned_query_makes_its_sink() -> None:
    sql = 'create stream if not exists "Out" as select * from x'
    foreseen = noted(query={"name": "q", "sql": sql, **CONTEXT})
    reader = 'INSERT INTO z SELECT * FROM "Out"'
    assert foreseen.explains(missing(reader, '"Out"'), reader, CONTEXT)
    assert foreseen.assume({"sql": reader})["queries"] == [{"name": "q", "sql": sql, **CONTEXT}]


def test_an_unknown_statement_may_make_anything() -> None:
    sql = "INSERT INTO z SELECT * FROM y"
    assert noted(query={"name": "q", "sql": UNKNOWN}).explains(missing(sql, "y"), sql, CONTEXT)


def test_assumed_objects_are_bodies_with_names() -> None:
    assumed = noted(
        stream=STREAM | {"comment": UNKNOWN},
        store={"name": "k", "kafka": {"bootstrap_servers": "h:1"}},
        entity={"store": "k", "name": "a/b", "kafka": {"partitions": 3, "replicas": 1}},
    ).assume({"sql": 'SELECT * FROM "page views"'})
    assert assumed["relations"] == [{**STREAM, "kind": "stream"}]
    assert assumed["stores"] == [{"name": "k", "kafka": {"bootstrap_servers": "h:1"}}]
    assert assumed["entities"] == [{"store": "k", "name": "a/b", "kafka": {"partitions": 3, "replicas": 1}}]


def test_secrets_are_not_passed_along() -> None:
    sasl = {"mechanism": "plain", "username": "u", "password_wo": None}
    assumed = noted(store={"name": "k", "kafka": {"bootstrap_servers": "h:1", "sasl": sasl}}).assume({})
    assert "password" not in str(assumed)


def test_a_replaced_query_makes_room_for_its_sink() -> None:
    foreseen = Foreseen()
    foreseen.leaves(RESOURCES["leatstream_query"], {"name": "old", "sink": "d.s.out"})
    assert foreseen.leaving({"code": "already-exists", "detail": "Relation d.s.out exists already."}) == "old"
    assert foreseen.leaving({"code": "already-exists", "detail": "Relation d.s.other exists"}) is None
    assert foreseen.leaving({"code": "unknown-relation", "detail": "d.s.out"}) is None


@pytest.mark.parametrize(
    ("name", "full"),
    [("x", "demo.public.x"), ("s.X", "demo.s.x"), ('a.b."C"', 'a.b."C"'), ("a.b.c.d", None), ("", None)],
)
def test_names_are_qualified(name: str, full: str | None) -> None:
    assert qualify(name, CONTEXT) == full


def test_names_without_context_stay_open() -> None:
    assert qualify("x", {"database": UNKNOWN}) is None


def test_a_stream_that_changes_is_told_from_one_that_comes() -> None:
    resource = RESOURCES["leatstream_stream"]
    sql = 'SELECT new FROM demo.public."Page Views"'
    comes, changes = Foreseen(), Foreseen()
    comes.note(resource, complete(resource.attributes, STREAM))
    changes.note(resource, complete(resource.attributes, STREAM), exists=True)
    assert comes.touches(sql)
    assert not comes.touches(sql, changing=True)
    assert changes.touches(sql, changing=True)


def test_a_planned_entity_explains_that_it_is_missing() -> None:
    foreseen = noted(entity={"store": "k", "name": "views-1", "kafka": {"partitions": 1, "replicas": 1}})
    assert foreseen.explains(
        {"code": "entity-not-found", "detail": "entity 'views-1' is not in store k"}, "", CONTEXT
    )
    assert not foreseen.explains(
        {"code": "entity-not-found", "detail": "entity views is not there"}, "", CONTEXT
    )


def test_a_planned_store_comes_with_its_password() -> None:
    store = RESOURCES["leatstream_store"]
    value = {"name": "s", "kinesis": {"region": "eu-west-1", "access_key_id": "AK"}}
    config = {"name": "s", "kinesis": {**value["kinesis"], "secret_access_key_wo": "sk"}}  # type: ignore[dict-item]
    foreseen = Foreseen()
    foreseen.note(store, complete(store.attributes, value), complete(store.attributes, config))
    assert foreseen.assume({})["stores"][0]["kinesis"]["secret_access_key"] == "sk"


def test_a_store_whose_address_is_not_known_is_a_name_alone() -> None:
    foreseen = noted(store={"name": "s", "kafka": {"bootstrap_servers": UNKNOWN}})
    assert foreseen.assume({}) == {}
    sql = "CREATE STREAM x WITH ('store' = 's') AS SELECT * FROM y"
    assert foreseen.explains(missing(sql, "s'", "unknown-store"), sql, CONTEXT)


def test_a_planned_application_makes_its_sinks_and_streams() -> None:
    told = {"name": "shop", "sql": "BEGIN APPLICATION shop …", "sinks": ["demo.public.out"]}
    foreseen = noted(application={**told, "relations": ["demo.public.raw"], **CONTEXT})
    reader = "INSERT INTO z SELECT * FROM out JOIN raw"
    for name in ("out", "raw"):
        assert foreseen.explains(missing(reader, name), reader, CONTEXT)
    assert not foreseen.explains(missing(reader, "z"), reader, CONTEXT)
    assert foreseen.assume({}) == {"applications": [{"name": "shop", "sql": told["sql"], **CONTEXT}]}


def test_an_application_of_unknown_sinks_may_make_anything() -> None:
    foreseen = noted(application={"name": "shop", "sql": UNKNOWN, "sinks": UNKNOWN, **CONTEXT})
    reader = "INSERT INTO z SELECT * FROM out"
    assert foreseen.explains(missing(reader, "z"), reader, CONTEXT)


def test_only_what_a_statement_leads_to_is_told() -> None:
    """All of a plan of 600 streams was more than a request may hold, and no statement could be planned."""
    foreseen = Foreseen()

    def note(kind: str, **value: Any) -> None:
        resource = RESOURCES[f"leatstream_{kind}"]
        foreseen.note(resource, complete(resource.attributes, value))

    columns = [{"name": f"c{n}", "type": "VARCHAR", "not_null": False} for n in range(30)]
    for number in range(600):
        named = {**STREAM, "name": f"s{number}", "topic": f"t{number}", "columns": columns}
        note("stream", **named)
        note("entity", store="k", name=f"t{number}", kafka={"partitions": 1, "configs": {"x": "y"}})
    note("query", name="q1", sql="CREATE STREAM demo.public.mid AS SELECT mask(c1) FROM s7", **CONTEXT)
    note("query", name="q2", sql="CREATE STREAM other AS SELECT * FROM s8", **CONTEXT)
    note(
        "application",
        name="app",
        sql="BEGIN APPLICATION app CREATE VIRTUAL STREAM v AS SELECT * FROM s9; END",
    )
    for name in ("mask", "idle"):
        note("function_source", name=f"{name}_jar", file=f"{name}.jar", content="AAAA")
        note("function", name=name, returns="VARCHAR", source=f"{name}_jar", handler="m.f")
    told = foreseen.assume({"sql": "CREATE STREAM x AS SELECT * FROM MID JOIN s70 ON true", **CONTEXT})
    assert [one["name"] for one in told["relations"]] == ["s7", "s70"]
    assert [one["name"] for one in told["queries"]] == ["q1"]
    assert "applications" not in told
    assert [one["name"] for one in told["functions"] + told["function_sources"]] == ["mask", "mask_jar"]
    # A live stream may stand for any of the topics; only their numbers count.
    assert len(told["entities"]) == 600
    assert told["entities"][0]["kafka"] == {"partitions": 1}
    through = foreseen.assume({"sql": "SELECT * FROM v"})
    assert [one["name"] for one in through["applications"] + through["relations"]] == ["app", "s9"]
