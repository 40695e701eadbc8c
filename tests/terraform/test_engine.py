"""The provider's engine under the real Terraform, against the in-memory REST double."""

from __future__ import annotations

from typing import Any

import pytest

BASE = """
resource "leatstream_store" "kafka" {
  name  = "kafka"
  kafka = { bootstrap_servers = "localhost:9092" }
}
resource "leatstream_database" "demo" {
  name = "demo"
}
resource "leatstream_schema" "main" {
  database = leatstream_database.demo.name
  name     = "public"
}
resource "leatstream_stream" "pageviews" {
  database     = leatstream_database.demo.name
  schema       = leatstream_schema.main.name
  name         = "pageviews"
  columns = [
    { name = "userid", type = "varchar" },
    { name = "viewtime", type = "BIGINT", not_null = true },
  ]
  store        = leatstream_store.kafka.name
  topic        = "pageviews"
  value_format = "json"
}
"""
QUERY = """
resource "leatstream_query" "filtered" {
  name     = "filtered"
  database = leatstream_database.demo.name
  schema   = leatstream_schema.main.name
  sql      = <<-SQL
    CREATE STREAM filtered AS
    SELECT * FROM ${leatstream_stream.pageviews.fqn} WHERE viewtime > 5;
  SQL
  timeouts = { create = "30s" }
}
"""


@pytest.mark.core
def test_chain_is_planned_whole_and_settles(with_double: Any, double: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    plan = terraform.plan()
    after = plan.change("leatstream_query.filtered")["after"]
    assert after["sink"] == "demo.public.filtered"
    assert after["sources"] == ["demo.public.pageviews"]
    assert after["effective"] == {
        "topic.partitions": {"value": "6", "origin": "left_most_source", "from": "demo.public.pageviews"}
    }
    assert after["plan"]["mode"] == "realtime"
    assert double.log == []
    terraform.apply()
    assert terraform.state()["leatstream_query.filtered"]["status"]["state"] == "running"
    terraform.is_settled()
    terraform.destroy()
    assert [key for key in double.objects if key[0] != "relation"] == []


@pytest.mark.long  # test_queries.py does the same with a real service
@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        (
            "create   stream filtered AS\n-- why\nSELECT * FROM demo.public.pageviews WHERE viewtime > 5",
            False,
        ),
        ("CREATE STREAM filtered AS SELECT * FROM demo.public.pageviews WHERE viewtime > 6", True),
    ],
)
def test_sql_is_compared_by_meaning(with_double: Any, double: Any, sql: str, changes: bool) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    start = QUERY.index("<<-SQL")
    end = QUERY.index("  SQL\n") + len("  SQL\n")
    terraform.write(BASE + QUERY[:start] + '"' + sql.replace("\n", "\\n") + '"\n' + QUERY[end:])
    if not changes:
        terraform.is_settled()
        return
    plan = terraform.plan()
    assert plan.actions() == {"leatstream_query.filtered": ["update"]}
    assert plan.change("leatstream_query.filtered")["after_unknown"]["status"] is True
    terraform.apply()
    assert terraform.state()["leatstream_query.filtered"]["status"]["job"]["attempt"] == 2
    terraform.is_settled()


def test_a_failed_job_is_a_difference(with_double: Any, double: Any) -> None:
    """The plan was empty, and exit code 0, while the pipeline was dead."""
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    status = double.objects["query", "filtered"]["status"]
    status |= {"state": "failed", "message": "topic pageviews is gone", "hint": "CREATE ENTITY pageviews"}
    done = terraform.run("plan", "-no-color", "-detailed-exitcode", "-out=plan.bin", ok=(2,))
    said = " ".join(done.stdout.split())
    assert "leatstream_query filtered failed and is started again" in said
    assert "topic pageviews is gone What to do: CREATE ENTITY pageviews If the cause remains" in said
    plan = terraform.plan()
    assert plan.actions() == {"leatstream_query.filtered": ["update"]}
    after = plan.change("leatstream_query.filtered")["after"]
    assert after["change"] == {"class": "start-again", "reason": "the job failed: topic pageviews is gone"}
    # It fails again: the apply fails, and the next plan is not empty.
    double.log.clear()
    double.next_state["filtered"] = "failed"
    said = terraform.fails("apply", "-auto-approve")
    assert "leatstream_query filtered failed" in said
    assert "java.lang.IllegalStateException: boom" in said
    assert [path for _, path, _ in double.log] == ["/v1/queries/filtered:restart"], "once"
    assert terraform.plan().actions() == {"leatstream_query.filtered": ["update"]}
    double.next_state["filtered"] = "running"
    terraform.apply()
    terraform.is_settled()
    # A failed job that shall not run is none.
    terraform.write(BASE + QUERY.replace("  timeouts", '  desired_state = "stopped"\n  timeouts'))
    terraform.apply()
    double.objects["query", "filtered"]["status"]["state"] = "failed"
    terraform.is_settled()


def test_each_query_that_is_affected_is_told_and_in_the_plan(with_double: Any, double: Any) -> None:
    """Terraform shows one of several warnings with the same summary, and a policy saw no class at all."""
    terraform = with_double
    second = QUERY.replace("filtered", "other")
    terraform.write(BASE + QUERY + second)
    terraform.init()
    first = terraform.plan()
    assert first.change("leatstream_query.other")["after"]["change"] is None
    terraform.apply()
    terraform.is_settled()
    plain = double.validate

    def validate(body: Any) -> Any:
        told = plain(body)
        lost = {"class": "new-state", "reason": f"{body.get('name')} keeps state"}
        told["statements"][0]["plan"]["change"] = lost
        return told

    double.validate = validate
    terraform.write(BASE + (QUERY + second).replace("> 5", "> 6"))
    said = " ".join(terraform.run("plan", "-no-color").stdout.split())
    plan = terraform.plan()
    for name in ("filtered", "other"):
        assert f"leatstream_query {name}: the running job is affected: new-state" in said
        told = {"class": "new-state", "reason": f"{name} keeps state"}
        assert plan.change(f"leatstream_query.{name}")["after"]["change"] == told
    assert "similar" not in said
    terraform.apply()
    terraform.is_settled()
    assert terraform.state()["leatstream_query.other"]["change"]["class"] == "new-state"
    commented = BASE + (QUERY + second).replace("> 5", "> 6").replace(
        "  timeouts", '  comment = "x"\n  timeouts'
    )
    terraform.write(commented)
    plan = terraform.plan()
    assert plan.change("leatstream_query.other")["after"]["change"]["class"] == "none"
    terraform.apply()
    terraform.is_settled()


def test_import_by_block_settles_and_restarts_nothing(
    with_double: Any, double: Any, terraform_at: Any
) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    before = terraform.state()
    double.log.clear()
    ids = {
        "leatstream_store.kafka": "kafka",
        "leatstream_database.demo": "demo",
        "leatstream_schema.main": "demo.public",
        "leatstream_stream.pageviews": "demo.public.pageviews",
        "leatstream_query.filtered": "filtered",
    }
    blocks = "".join(f'import {{\n  to = {to}\n  id = "{id_}"\n}}\n' for to, id_ in ids.items())
    second = terraform_at(double.url, double.token, "second")
    second.write(BASE + QUERY + blocks)
    second.init()
    plan = second.plan()
    assert plan.actions() == {}
    assert double.log == []
    second.apply()
    assert double.log == []
    assert second.state() == before
    second.is_settled()


@pytest.mark.core
@pytest.mark.long  # by block it is the same to the provider
def test_import_by_command_settles(with_double: Any, double: Any, terraform_at: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    double.log.clear()
    second = terraform_at(double.url, double.token, "second")
    second.write(BASE + QUERY)
    second.init()
    second.run("import", "leatstream_query.filtered", "filtered")
    second.run("import", "leatstream_stream.pageviews", 'demo."public".pageviews')
    second.run("import", "leatstream_database.demo", "demo")
    second.run("import", "leatstream_schema.main", "demo.public")
    second.run("import", "leatstream_store.kafka", "kafka")
    second.is_settled()
    assert double.log == []


def test_generated_configuration_is_complete(with_double: Any, double: Any, terraform_at: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    second = terraform_at(double.url, double.token, "second")
    blocks = {
        "leatstream_stream.s": "demo.public.pageviews",
        "leatstream_query.q": "filtered",
        "leatstream_store.k": "kafka",
    }
    second.write("".join(f'import {{\n  to = {to}\n  id = "{id_}"\n}}\n' for to, id_ in blocks.items()))
    second.init()
    second.run("plan", "-generate-config-out=generated.tf", "-out=plan.bin")
    second.run("apply", "plan.bin")
    second.is_settled()


@pytest.mark.core
def test_drift_is_shown_and_healed(with_double: Any, double: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    query = double.objects["query", "filtered"]
    query["desired_state"] = query["_body"]["desired_state"] = query["status"]["state"] = "stopped"
    query["generation"] += 1
    plan = terraform.plan()
    assert plan.actions() == {"leatstream_query.filtered": ["update"]}
    assert "leatstream_query.filtered" in plan.drifted()
    terraform.apply()
    assert double.objects["query", "filtered"]["desired_state"] == "running"
    del double.objects["relation", "demo", "public", "pageviews"]
    assert terraform.plan().actions()["leatstream_stream.pageviews"] == ["create"]


def test_failed_job_shows_its_cause_and_is_tainted(with_double: Any, double: Any) -> None:
    terraform = with_double
    double.next_state["filtered"] = "failed"
    terraform.write(BASE + QUERY)
    terraform.init()
    said = terraform.fails("apply", "-auto-approve")
    assert "boom in the job" in said
    assert "IllegalStateException" in said
    assert "leatstream_query.filtered" in terraform.state()
    double.next_state["filtered"] = "running"
    assert terraform.plan().actions() == {"leatstream_query.filtered": ["delete", "create"]}
    terraform.apply()
    terraform.is_settled()


@pytest.mark.long  # test_queries.py does the same with a real service
def test_timeout_keeps_the_object_and_shows_the_log(with_double: Any, double: Any) -> None:
    terraform = with_double
    double.next_state["filtered"] = "starting"
    terraform.write(BASE + QUERY.replace('"30s"', '"1s"'))
    terraform.init()
    said = terraform.fails("apply", "-auto-approve")
    assert "is not running after 1 s" in said
    assert "IllegalStateException" in said
    assert "leatstream_query.filtered" in terraform.state()


def test_an_update_that_timed_out_is_awaited_by_the_next_apply(with_double: Any, double: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    double.next_state["filtered"] = "starting"
    terraform.write(BASE + QUERY.replace("> 5", "> 6").replace('create = "30s"', 'update = "1s"'))
    assert "is not running after 1 s" in terraform.fails("apply", "-auto-approve")
    written = len(double.log)
    assert terraform.plan().actions() == {"leatstream_query.filtered": ["update"]}
    assert "is not running after 1 s" in terraform.fails("apply", "-auto-approve")
    assert len(double.log) == written, "waiting writes nothing"
    double.next_state["filtered"] = "running"
    terraform.apply()
    terraform.is_settled()


@pytest.mark.long  # test_queries.py does the same with a real service
def test_sql_fault_is_an_error_at_plan_with_its_place(with_double: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY.replace("${leatstream_stream.pageviews.fqn}", "demo.public.nothing"))
    terraform.init()
    said = terraform.fails("plan")
    assert "unknown-relation" in said
    assert "line 2, column 15" in said
    assert "^^^^^^^^^^^^^^^^^^^" in said
    assert "depends_on" in said
    assert "sql " in said


def test_service_without_assume_leaves_values_for_apply(with_double: Any, double: Any) -> None:
    double.assume = False
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    plan = terraform.plan()
    assert plan.change("leatstream_query.filtered")["after_unknown"]["sink"] is True
    terraform.apply()
    assert terraform.state()["leatstream_query.filtered"]["sink"] == "demo.public.filtered"
    terraform.is_settled()


def test_refused_change_is_replaced_by_the_next_plan(with_double: Any, double: Any, problem: Any) -> None:
    terraform = with_double
    terraform.write(BASE)
    terraform.init()
    terraform.apply()
    changed = BASE.replace('type = "varchar"', 'type = "INT"')
    terraform.write(changed)
    assert terraform.plan().actions() == {"leatstream_stream.pageviews": ["update"]}
    double.refuse.append(
        problem(
            409,
            "requires-replacement",
            "columns cannot change",
            errors=[{"detail": "columns cannot change", "pointer": "#/columns/0/type"}],
        )
    )
    said = terraform.fails("apply", "-auto-approve")
    assert "columns cannot change" in said
    assert terraform.plan().actions() == {"leatstream_stream.pageviews": ["delete", "create"]}
    terraform.apply()
    terraform.is_settled()


def test_data_sources_and_functions(with_double: Any) -> None:
    terraform = with_double
    terraform.write(
        BASE
        + """
        data "leatstream_stream" "p" {
          database = leatstream_stream.pageviews.database
          schema   = leatstream_stream.pageviews.schema
          name     = leatstream_stream.pageviews.name
        }
        output "columns" { value = data.leatstream_stream.p.columns[*].name }
        output "fqn" { value = provider::leatstream::fqn("demo", "Öffentlich", "x") }
        output "q" { value = provider::leatstream::quote_ident("a") }
        """
    )
    terraform.init()
    terraform.apply()
    assert terraform.run("output", "-raw", "fqn").stdout == 'demo."Öffentlich".x'
    assert '"userid"' in terraform.run("output", "-json", "columns").stdout
    terraform.is_settled()


def test_service_that_is_down_is_told_once(with_double: Any, double: Any, terraform_at: Any) -> None:
    terraform = with_double
    terraform.write(BASE)
    terraform.init()
    double.stop()
    terraform.extra_env["LEATSTREAM_RETRY_SECONDS"] = "0"
    said = terraform.fails("plan")
    assert said.count("does not answer") == 1
    assert double.url in said
    assert "LEATSTREAM_URL" in said


def test_wrong_token_is_told_once(terraform_at: Any, double: Any) -> None:
    terraform = terraform_at(double.url, "leat_wrong")
    terraform.write(BASE)
    terraform.init()
    said = terraform.fails("plan")
    assert said.count("refused the token") == 1
    assert "leat_wrong" not in said


def test_stale_plan_changes_nothing(with_double: Any, double: Any) -> None:
    terraform = with_double
    terraform.write(BASE)
    terraform.init()
    terraform.apply()
    terraform.write(BASE.replace('name = "demo"\n', 'name = "demo"\n  comment = "mine"\n'))
    terraform.run("plan", "-out=plan.bin")
    double.objects["database", "demo"]["generation"] += 1
    said = terraform.fails("apply", "plan.bin")
    assert "changed by somebody else" in said


@pytest.mark.long  # test_queries.py does the same with a real service
def test_destroy_keeps_the_topic_unless_told(with_double: Any, double: Any) -> None:
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    terraform.write(BASE + QUERY.replace('"30s" }', '"30s" }\n  delete_sink_entity = true'))
    double.log.clear()
    terraform.apply()
    assert double.log == []
    terraform.write(BASE)
    terraform.apply()
    assert [path for method, path, _ in double.log] == ["/v1/queries/filtered?delete_entity=true"]


def test_destroy_validates_nothing(with_double: Any, double: Any) -> None:
    """A typo in one query kept everything from being destroyed."""
    terraform = with_double
    terraform.write(BASE + QUERY)
    terraform.init()
    terraform.apply()
    terraform.write(BASE + QUERY.replace("SELECT *", "SELEC *").replace("CREATE STREAM", "CREATE STREEM"))
    assert "sql-syntax" in terraform.fails("plan")
    terraform.run("plan", "-destroy", "-out=plan.bin")
    terraform.destroy()
    assert [key for key in double.objects if key[0] != "relation"] == []


def test_an_imported_state_is_destroyed_in_one_run(with_double: Any, double: Any, terraform_at: Any) -> None:
    """Without references there is no order: 62 errors, and no way on."""
    many = "".join(
        f'resource "leatstream_database" "d{at}" {{\n  name = "d{at}"\n}}\n'
        f'resource "leatstream_schema" "s{at}" {{\n  database = leatstream_database.d{at}.name\n  name = "s"\n}}\n'
        for at in range(12)
    )
    with_double.write(BASE + QUERY + many)
    with_double.init()
    with_double.apply()
    ids = {
        "leatstream_store.kafka": "kafka",
        "leatstream_database.demo": "demo",
        "leatstream_schema.main": "demo.public",
        "leatstream_stream.pageviews": "demo.public.pageviews",
        "leatstream_query.filtered": "filtered",
        **{f"leatstream_database.d{at}": f"d{at}" for at in range(12)},
        **{f"leatstream_schema.s{at}": f"d{at}.s" for at in range(12)},
    }
    second = terraform_at(double.url, double.token, "second")
    second.write("".join(f'import {{\n  to = {to}\n  id = "{id_}"\n}}\n' for to, id_ in ids.items()))
    second.init()
    second.run("plan", "-generate-config-out=generated.tf", "-out=plan.bin")
    second.run("apply", "plan.bin")
    second.destroy()
    assert double.objects == {}
