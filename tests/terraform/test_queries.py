"""What only queries do: inference and faults at plan, SQL by meaning, desired state, failures, imports."""

from __future__ import annotations

from typing import Any

import pytest
from query_scene import BASE, QUERY, SELECT, Scene


@pytest.fixture
def scene(terraform: Any, leatstream_server: Any) -> Scene:
    found = Scene(terraform, leatstream_server)
    found.write()
    terraform.init()
    return found


@pytest.mark.core
def test_inferred_values_are_known_before_anything_exists(scene: Scene) -> None:
    change = scene.terraform.plan().change("leatstream_query.q")
    after = change["after"]
    source = f"db_{scene.tag}.main.views"
    assert after["sink"] == f"db_{scene.tag}.main.out_{scene.tag}"
    assert after["sources"] == [source]
    assert after["kind"] == "create_stream_as"
    assert after["effective"]["topic.partitions"] == {
        "value": "4",
        "origin": "left_most_source",
        "from": source,
    }
    assert [c["name"] for c in after["plan"]["sink"]["columns"]] == ["userid", "viewtime"]
    scene.terraform.apply()
    state = scene.terraform.state()["leatstream_query.q"]
    assert state["effective"] == after["effective"]
    assert state["status"]["state"] == "running"
    scene.terraform.is_settled()
    scene.terraform.destroy()


@pytest.mark.parametrize(
    ("sql", "code", "place"),
    [
        ("CREATE STREAM x AS SELEC userid FROM ${leatstream_stream.views.fqn}", "sql-syntax", "line 1"),
        pytest.param(
            "CREATE STREAM x AS SELECT * FROM nothing_here",
            "unknown-relation",
            "line 1, column 34",
            marks=pytest.mark.long,
        ),
        (
            "CREATE STREAM x AS\\nSELECT nope FROM ${leatstream_stream.views.fqn}",
            "unknown-column",
            "line 2, column 8",
        ),
        pytest.param(
            "CREATE STREAM x AS SELECT nofn(userid) FROM ${leatstream_stream.views.fqn}",
            "unknown-function",
            "line 1",
            marks=pytest.mark.long,
        ),
    ],
)
def test_faults_of_the_sql_are_told_at_plan(scene: Scene, sql: str, code: str, place: str) -> None:
    # Once with everything planned, once with everything there but the query.
    scene.write("")
    scene.write(None, extra=QUERY.replace("<<-SQL\n$sql\n  SQL", f'"{sql}"').replace("$more", ""))
    for there in (False, True):
        if there:
            scene.write(None)
            scene.terraform.apply()
            scene.write(None, extra=QUERY.replace("<<-SQL\n$sql\n  SQL", f'"{sql}"').replace("$more", ""))
        said = scene.terraform.fails("plan")
        assert code in said
        assert place in said
        assert "with leatstream_query.q" in said
        assert "^" in said
    scene.write(None)
    scene.terraform.destroy()


@pytest.mark.core
def test_spelling_makes_no_difference_and_meaning_does(scene: Scene) -> None:
    terraform = scene.terraform
    terraform.apply()
    before = scene.query()
    scene.write(
        "    -- which views count\n    create stream out_$tag as select userid,   viewtime\n"
        "    FROM ${leatstream_stream.views.fqn} /* all */ WHERE viewtime > 5"
    )
    terraform.is_settled()
    assert scene.query()["generation"] == before["generation"]
    scene.write(SELECT.replace("> 5", "> 7"))
    plan = terraform.plan()
    assert plan.actions() == {"leatstream_query.q": ["update"]}
    assert plan.change("leatstream_query.q")["after"]["sink"] == before["sink"]
    terraform.apply()
    assert scene.query()["generation"] == before["generation"] + 1
    assert "> 7" in scene.query()["sql"]
    terraform.is_settled()
    terraform.destroy()


def test_desired_state(scene: Scene) -> None:
    terraform = scene.terraform
    scene.write(more='  desired_state = "stopped"')
    terraform.apply()
    assert scene.query()["status"]["state"] == "stopped"
    terraform.is_settled()
    scene.write(more='  desired_state = "running"')
    terraform.apply()
    assert scene.query()["status"]["state"] == "running"
    with scene.server.client() as client:
        body = {"desired_state": "stopped"}
        assert client.patch(f"/v1/queries/query_{scene.tag}", json=body).status_code == 200
    plan = terraform.plan()
    assert plan.actions() == {"leatstream_query.q": ["update"]}
    assert "leatstream_query.q" in plan.drifted()
    terraform.apply()
    assert scene.query()["status"]["state"] == "running"
    terraform.is_settled()
    terraform.destroy()


def test_an_import_with_timeouts_restarts_nothing(scene: Scene, terraform_at: Any) -> None:
    scene.terraform.apply()
    before = scene.query()
    second = terraform_at(scene.server.url, scene.server.token, "second")
    blocks = "".join(
        f'import {{\n  to = {to}\n  id = "{text}"\n}}\n'
        for to, text in {
            "leatstream_store.k": "store_$tag",
            "leatstream_database.d": "db_$tag",
            "leatstream_schema.s": "db_$tag.main",
            "leatstream_entity.views": "store_$tag/views_$tag",
            "leatstream_stream.views": "db_$tag.main.views",
            "leatstream_query.q": "query_$tag",
        }.items()
    )
    scene.write(extra=blocks, terraform=second)
    second.init()
    assert second.plan().actions() == {}
    second.apply()
    second.is_settled()
    after = scene.query()
    assert after["generation"] == before["generation"]
    assert after["status"]["job"] == before["status"]["job"]
    scene.terraform.destroy()


@pytest.mark.parametrize("told", [False, True])
def test_destroy_keeps_the_topic_unless_told(scene: Scene, told: bool) -> None:
    scene.write(more=f"  delete_sink_entity = {str(told).lower()}")
    scene.terraform.apply()
    assert scene.has_topic()
    scene.write(None)
    scene.terraform.apply()
    assert scene.has_topic() is not told
    if not told:
        with scene.server.client() as client:
            client.delete(f"/v1/stores/store_{scene.tag}/entities/out_{scene.tag}")
    scene.terraform.destroy()


def test_a_time_out_shows_the_log_and_loses_nothing(scene: Scene) -> None:
    terraform = scene.terraform
    scene.write()
    text = (
        (terraform.folder / "main.tf").read_text(encoding="utf-8").replace('create = "4m"', 'create = "1ms"')
    )
    (terraform.folder / "main.tf").write_text(text, encoding="utf-8")
    said = terraform.fails("apply", "-auto-approve")
    assert "is not running after 0.001 s" in said
    assert "leatstream_query.q" in terraform.state()
    scene.write()
    assert terraform.plan().actions() == {"leatstream_query.q": ["delete", "create"]}
    terraform.apply()
    terraform.is_settled()
    terraform.destroy()


def test_a_query_that_reads_another_is_planned_with_it(scene: Scene) -> None:
    second = """
resource "leatstream_query" "r" {
  name     = "second_$tag"
  database = leatstream_database.d.name
  schema   = leatstream_schema.s.name
  store    = leatstream_store.k.name
  sql      = "CREATE STREAM again_$tag AS SELECT userid FROM ${leatstream_query.q.sink};"
  timeouts = { create = "4m" }
}
"""
    scene.write(extra=second)
    change = scene.terraform.plan().change("leatstream_query.r")
    assert change["after"]["sources"] == [f"db_{scene.tag}.main.out_{scene.tag}"]
    scene.terraform.apply()
    scene.terraform.is_settled()
    scene.terraform.destroy()


def test_a_change_of_the_sink_replaces_at_plan(scene: Scene) -> None:
    terraform = scene.terraform
    terraform.apply()
    scene.write(SELECT.replace("out_$tag", "other_$tag"))
    plan = terraform.plan()
    assert plan.actions() == {"leatstream_query.q": ["delete", "create"]}
    terraform.apply()
    terraform.is_settled()
    # The same sink under another name: the old query makes room first.
    text = (terraform.folder / "main.tf").read_text(encoding="utf-8")
    (terraform.folder / "main.tf").write_text(text.replace(f"query_{scene.tag}", f"renamed_{scene.tag}"))
    assert terraform.plan().actions() == {"leatstream_query.q": ["delete", "create"]}
    terraform.apply()
    terraform.is_settled()
    terraform.destroy()


@pytest.mark.core
def test_dependents_stop_a_delete_with_a_reason(scene: Scene, terraform_at: Any) -> None:
    scene.terraform.apply()
    other = terraform_at(scene.server.url, scene.server.token, "other")
    other.write(f'import {{\n  to = leatstream_stream.v\n  id = "db_{scene.tag}.main.views"\n}}\n')
    other.init()
    other.run("plan", "-generate-config-out=generated.tf", "-out=plan.bin")
    other.run("apply", "plan.bin")
    said = other.fails("destroy", "-auto-approve")
    assert "has-dependents" in said
    assert f"query_{scene.tag}" in said
    scene.terraform.destroy()


def test_a_default_topic_is_written_out_and_left_out_in_place(scene: Scene) -> None:
    """It planned a replacement, which queries on the stream refuse."""
    topic = "  topic        = leatstream_entity.views.name\n"
    # Without the reference Terraform makes both at once, and a stream whose topic is not there yet is refused.
    order = "  depends_on   = [leatstream_entity.views]\n"
    short = BASE.replace('= "views"\n  columns', '= "views_$tag"\n  columns').replace(topic, order)
    full = short.replace("  value_format", f"{topic}  value_format")
    for text, actions in ((short, None), (full, ["update"]), (short, ["update"])):
        written = text.replace("$tag", scene.tag).replace("$bootstrap", scene.server.kafka_bootstrap)
        scene.terraform.write(written)
        if actions:
            assert scene.terraform.plan().actions() == {"leatstream_stream.views": actions}
        scene.terraform.apply()
        scene.terraform.is_settled()
    scene.terraform.destroy()


def test_a_source_that_is_replaced_under_a_query_tells_the_ways(scene: Scene) -> None:
    """Terraform deletes it first, and nothing in its message said what to write instead."""
    scene.terraform.apply()
    file = scene.terraform.folder / "main.tf"
    text = file.read_text(encoding="utf-8")
    name = '  name         = "views"\n'
    renamed = '  name         = "seen"\n'
    file.write_text(text.replace(name, renamed))
    said = scene.terraform.fails("apply", "-auto-approve")
    assert "has-dependents" in said
    assert "create_before_destroy" in said
    file.write_text(text.replace(name, renamed + "  lifecycle { create_before_destroy = true }\n"))
    scene.terraform.apply()
    scene.terraform.is_settled()
    # Another topic under the same name: both cannot exist at once.
    moved = text.replace("leatstream_entity.views.name", "leatstream_entity.other.name").replace(
        name, renamed
    )
    other = '\nresource "leatstream_entity" "other" {\n  store = leatstream_store.k.name\n'
    moved += other + f'  name  = "other_{scene.tag}"\n  kafka = {{ partitions = 4, replicas = 1 }}\n}}\n'
    file.write_text(moved)
    said = scene.terraform.fails("apply", "-auto-approve")
    assert "replace_triggered_by" in said
    trigger = "  lifecycle { replace_triggered_by = [leatstream_stream.views.topic] }\n  timeouts = { create"
    file.write_text(moved.replace("  timeouts = { create", trigger))
    scene.terraform.apply()
    scene.terraform.is_settled()
    scene.terraform.destroy()


def test_an_unreachable_store_is_made_and_says_why(scene: Scene) -> None:
    scene.terraform.write(
        f'resource "leatstream_store" "x" {{\n  name = "lost_{scene.tag}"\n'
        '  kafka = { bootstrap_servers = "127.0.0.1:1" }\n}\n'
    )
    said = scene.terraform.apply()
    assert "was saved but is errored" in said
    assert scene.terraform.state()["leatstream_store.x"]["status"]["state"] == "errored"
    scene.terraform.is_settled()
    scene.terraform.destroy()
