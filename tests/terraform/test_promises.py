"""A green plan is a promise: what the service refuses is refused at plan, and a dead job is a difference."""

from __future__ import annotations

from typing import Any

import pytest
from query_scene import BASE, QUERY, Scene

STREAM = """
resource "leatstream_stream" "$name" {
  database     = leatstream_database.d.name
  schema       = leatstream_schema.s.name
  name         = "$name"
  columns      = [{ name = "viewtime", type = "$type" }]
  store        = leatstream_store.k.name
  topic        = leatstream_entity.views.name
  value_format = "$format"
  $more
}
"""
SOURCE = """
resource "leatstream_function_source" "f" {
  name    = "source_$tag"
  file    = "f.py"
  content = "$code"
}
resource "leatstream_function" "f" {
  name      = "twice_$tag"
  arguments = [{ name = "x", type = "BIGINT" }]
  returns   = "BIGINT"
  source    = leatstream_function_source.f.name
  handler   = "twice"
}
"""
GOOD = "def twice(x):\\n    return 2 * x\\n"


def stream(name: str, type: str = "bigint", format: str = "json", more: str = "") -> str:
    text = STREAM.replace("$name", name).replace("$type", type)
    return text.replace("$format", format).replace("$more", more)


@pytest.fixture
def scene(terraform: Any, leatstream_server: Any) -> Scene:
    found = Scene(terraform, leatstream_server)
    found.write(None)
    terraform.init()
    return found


@pytest.mark.core
def test_what_the_service_refuses_is_refused_at_plan(scene: Scene) -> None:
    wrong = (
        stream("a", type="DOUBEL")
        + stream("b", more='timestamp = "at"')
        + stream("c", format="jsn")
        + stream("d", more='key_format = "primitive"\n  key_type = "text"')
        + SOURCE.replace("$code", GOOD.replace("(x)", "(x"))
    )
    fewer = BASE.replace("partitions = 4", "partitions = 2")
    # Once with everything only planned, once with the topic there.
    for there in (False, True):
        if there:
            scene.write(None)
            scene.terraform.apply()
        scene.write(None, extra=wrong)
        said = scene.terraform.fails("plan")
        for name in "abcd":
            assert f"with leatstream_stream.{name}," in said
        for word in (
            "DOUBEL",
            "Timestamp column at",
            "jsn",
            "'key.type'",
            "with leatstream_function_source.f",
        ):
            assert word in said
    text = fewer.replace("$tag", scene.tag).replace("$bootstrap", scene.server.kafka_bootstrap)
    scene.terraform.write(text)
    assert "cannot remove them" in scene.terraform.fails("plan")
    spelled = stream("a", format="JSON", more='key_format = "PRIMITIVE"\n  key_type = "varchar"')
    scene.write(None, extra=spelled)
    scene.terraform.apply()
    scene.terraform.is_settled()
    scene.terraform.destroy()


def test_columns_and_code_change_under_running_queries(scene: Scene) -> None:
    """An added column could not be taken back, and new code of a function never ran."""
    sql = "    CREATE STREAM out_$tag AS\n    SELECT twice_$tag(viewtime) AS v FROM ${leatstream_stream.views.fqn}"
    query = QUERY.replace("$sql", sql).replace("$more", "  depends_on = [leatstream_function.f]")
    source = SOURCE.replace("$code", GOOD)
    scene.write(None, extra=source + query)
    scene.terraform.apply()
    before = scene.query()["status"]["job"]["attempt"]
    text = (scene.terraform.folder / "main.tf").read_text(encoding="utf-8")
    path = scene.terraform.folder / "main.tf"
    unread = text.replace(', { name = "userid", type = "VARCHAR" }', "")
    read = text.replace('{ name = "viewtime", type = "BIGINT" }, ', "")
    path.write_text(read, encoding="utf-8")
    assert f"query_{scene.tag}" in scene.terraform.fails("plan")
    path.write_text(unread.replace("2 * x", "3 * x"), encoding="utf-8")
    said = " ".join(scene.terraform.run("plan", "-no-color").stdout.split())
    assert f"query query_{scene.tag} is restarted with the new code" in said
    scene.terraform.apply()
    scene.terraform.is_settled()
    with scene.server.client() as client:
        client.get(f"/v1/queries/query_{scene.tag}?wait_for=running&timeout=60s")
    assert scene.query()["status"]["job"]["attempt"] > before
    scene.terraform.destroy()


def test_a_failed_query_is_started_again_or_reported(scene: Scene) -> None:
    sql = (
        "    CREATE STREAM out_$tag AS SELECT CAST(userid AS BIGINT) AS u FROM ${leatstream_stream.views.fqn}\n"
        "    WITH ('starting.position' = 'earliest')"
    )
    scene.write(sql)
    scene.terraform.apply()
    with scene.server.client() as client:
        insert = (
            f'INSERT INTO ENTITY views_{scene.tag} IN STORE store_{scene.tag} VALUE (\'{{"userid":"x"}}\')'
        )
        answer = client.post("/v1/statements", json={"sql": insert})
        assert answer.status_code == 200, answer.text
        client.get(f"/v1/queries/query_{scene.tag}?wait_for=failed&timeout=60s")
    assert scene.query()["status"]["state"] == "failed"
    done = scene.terraform.run("plan", "-no-color", "-detailed-exitcode", ok=(2,))
    assert f"leatstream_query query_{scene.tag} failed and is started again" in " ".join(done.stdout.split())
    scene.write(sql.replace("CAST(", "TRY_CAST("))
    scene.terraform.apply()
    scene.terraform.is_settled()
    # What the query made goes with it, though nothing says so here; a typo keeps nothing.
    scene.write(sql.replace("SELECT", "SELEC"))
    scene.terraform.destroy()
