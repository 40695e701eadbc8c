"""The catalog as code: SQL that makes it again on an empty server, Terraform configuration and a CDKTF program."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fakes
import pytest
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.rest.app import create_app
from leatstream.services.export.objects import KINDS

DESCRIPTORS = "CiQKB2EucHJvdG8SBHNob3AiEwoFT3JkZXISCgoCaWQYASABKAk="
SECRETS = ("hunter2", "r3gistry", "n4med", "b4sic")
COLUMNS = [
    {"name": "viewtime", "type": "BIGINT", "not_null": True, "comment": "it's when"},
    {"name": "userid", "type": "VARCHAR"},
]
BODIES: dict[str, Any] = {
    "secrets/named": {"value": "n4med", "comment": "it's one", "properties": {"of": "kafka"}},
    "schema-registries/registry": {
        "type": "confluent",
        "uris": "https://registry.example.com:8081",
        "username": "leat",
        "password": "r3gistry",
    },
    "schema-registries/other": {
        "type": "confluent_cloud",
        "uris": "https://cloud.example.com",
        "username": "KEY",
        "password_secret": "named",
    },
    "descriptor-sources/shop_types": {"descriptor_set": DESCRIPTORS, "comment": "orders"},
    "stores/k": {"kafka": {"bootstrap_servers": "localhost:9092"}, "schema_registry": "registry"},
    'stores/"My Store"': {
        "comment": "two\nlines",
        "kafka": {
            "bootstrap_servers": "broker:9093",
            "security_protocol": "sasl_ssl",
            "sasl": {"mechanism": "scram_sha_256", "username": "leat", "password": "hunter2"},
        },
    },
    "stores/by_name": {
        "kafka": {
            "bootstrap_servers": "broker:9093",
            "security_protocol": "sasl_plaintext",
            "sasl": {"mechanism": "plain", "username": "leat", "password_secret": "named"},
        },
    },
    "databases/demo": {"comment": "the ${shop} %{if}"},
    "databases/demo/schemas/shop": {"comment": "orders"},
    "databases/demo/schemas/public": {"comment": "the first"},
    "databases/empty": {},
    "stores/k/entities/pageviews": {"kafka": {"partitions": 3, "replicas": 1}},
    "function-sources/scores": {"file": "scores.py", "content": "def score(points):\n    return points\n"},
    "functions/score": {
        "arguments": [{"name": "points", "type": "BIGINT"}],
        "returns": "BIGINT",
        "source": "scores",
        "handler": "score",
        "timeout_seconds": 5,
        "comment": "doubles",
    },
    "relations/demo.public.pageviews": {
        "columns": COLUMNS,
        "store": "k",
        "value_format": "json",
        "key_format": "primitive",
        "key_type": "VARCHAR",
        "timestamp": "viewtime",
        "comment": "from the ${web}",
    },
    'relations/demo.shop."Other"': {
        "columns": COLUMNS,
        "store": "My Store",
        "topic": "pageviews",
        "value_format": "json",
    },
    "relations/demo.shop.users": {
        "kind": "changelog",
        "columns": COLUMNS,
        "primary_key": ["userid"],
        "store": "k",
        "topic": "pageviews",
        "value_format": "json",
    },
    "queries/first": {
        "sql": "CREATE STREAM one_user AS\n  SELECT viewtime, userid -- of one\n  FROM pageviews\n"
        "  WHERE userid = 'b${x}';",
        "database": "demo",
        "schema": "public",
        "store": "k",
        "comment": "why",
        "properties": {"mode": "micro_batch"},
    },
    # Sorts before what it reads.
    "queries/a_second": {
        "sql": "CREATE STREAM demo.shop.again WITH ('store' = 'k') AS SELECT * FROM demo.public.one_user"
    },
    "queries/by_view": {
        "sql": "CREATE MATERIALIZED VIEW by_view AS SELECT viewtime, userid FROM public.one_user",
        "database": "demo",
        "schema": "public",
    },
    "queries/into": {
        "sql": "INSERT INTO demo.shop.again SELECT * FROM demo.public.pageviews",
        "desired_state": "stopped",
    },
    "applications/app": {
        "sql": "BEGIN APPLICATION app\n"
        "  CREATE STREAM member AS SELECT userid FROM public.one_user;\nEND APPLICATION",
        "database": "demo",
        "schema": "shop",
        "store": "k",
    },
    "roles/analyst": {
        "comment": "reads",
        "grants": [
            {"privilege": "usage", "on": "database", "name": "demo"},
            {"privilege": "select", "on": "relation", "name": "demo.public.pageviews", "grant_option": True},
            {"privilege": "select", "on": "relation", "in_schema": "demo.shop"},
            {"privilege": "read_entity", "on": "store", "name": "k", "entities": "page*"},
            {"privilege": "monitor", "on": "organization"},
        ],
    },
    "roles/lead": {"inherits": ["analyst"]},
    'users/"ann@example.com"': {"roles": ["lead", "reader"], "default_role": "lead"},
    "service-accounts/ci": {"roles": ["reader"], "disabled": True, "comment": "plans"},
}
LISTS = (
    *("secrets", "schema-registries", "descriptor-sources", "stores", "databases", "databases/demo/schemas"),
    *("function-sources", "functions", "relations", "queries", "applications", "roles", "users"),
    "service-accounts",
)
# What differs between two servers with the same objects.
_OWN = {"id", "generation", "created_at", "updated_at", "created_by", "created_by_query", "status", "plan"}

# SQL says in the statement what REST may say beside it.
_SPELLED = {
    "comment",
    "sql",
    "properties",
    "database",
    "schema",
    "store",
    "statement_canonical",
    "statement_hash",
}


@contextmanager
def administered(directory: Path, **parts: Any) -> Iterator[TestClient]:
    """The administrator's client of a new world."""
    world = fakes.make_world(directory)
    world.cluster.__dict__.update(parts)
    headers = {"Authorization": f"Bearer {fakes.administrator(world)}"}
    with TestClient(create_app(world.env), headers=headers, raise_server_exceptions=False) as opened:
        opened.cluster = world.cluster  # type: ignore[attr-defined]
        yield opened
    world.units.close()


@pytest.fixture(scope="module")
def shop() -> Iterator[Any]:
    """The client of a world with objects of every kind, which no test changes."""
    with memory_directory() as directory, administered(Path(directory)) as opened:
        for path, body in BODIES.items():
            answer = opened.put(f"/v1/{path}", json=body)
            assert answer.status_code in (200, 201), f"{path}: {answer.text}"
        index = "CREATE INDEX by_user ON demo.public.by_view (userid);"
        assert opened.post("/v1/statements", json={"sql": index}).status_code == 200
        yield opened


@pytest.fixture
def empty(shop: Any) -> Iterator[TestClient]:
    """The client of another server over the same topics, with an empty catalog."""
    with memory_directory() as directory, administered(Path(directory), **vars(shop.cluster)) as opened:
        yield opened


def exported(client: TestClient, *names: str, form: str = "sql") -> Any:
    answer = client.get("/v1/catalog:export", params={"format": form, "name": list(names)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def spoken(value: Any) -> Any:
    """Settings of a store without those that have their defaults, which SQL may spell out."""
    if not isinstance(value, dict):
        return value
    defaults = {"verify_hostname": True, "security_protocol": "plaintext"}
    found = {key: spoken(one) for key, one in value.items()}
    return {key: one for key, one in found.items() if one not in (None, {}, defaults.get(key))}


def catalog(client: TestClient) -> dict[str, Any]:
    """Every object, without what no two servers have in common."""
    found = {}
    for path in LISTS:
        items = client.get(f"/v1/{path}").json()["items"]
        own = _OWN | (_SPELLED if path == "queries" else set())
        found[path] = [{key: value for key, value in one.items() if key not in own} for one in items]
    found["stores"] = [spoken(one) for one in found["stores"]]
    return found


def run_script(client: TestClient, export: Any, values: dict[str, str]) -> Any:
    """Run the SQL as a person does: variables replaced, files beside the script."""
    script, *others = export["files"]
    text = script["content"]
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value)
    files = {
        one["path"]: one["content"]
        if one["encoding"] == "base64"
        else base64.b64encode(one["content"].encode()).decode()
        for one in others
    }
    return client.post("/v1/statements", json={"sql": text, "files": files})


def test_sql_makes_the_same_catalog_on_an_empty_server(shop: TestClient, empty: TestClient) -> None:
    export = exported(shop)
    assert export["files"][0]["path"] == "catalog.sql"
    values = dict(zip(export["variables"], ("n4med", "r3gistry", "hunter2"), strict=True))
    answer = run_script(empty, export, values)
    assert answer.status_code == 200, answer.text
    again, first = catalog(empty), catalog(shop)
    for path in LISTS:
        assert again[path] == first[path], path
    assert export["notes"] == ["SQL has no comment for query first."]
    assert exported(empty)["files"][1:] == export["files"][1:]
    assert _statements(exported(empty)) == _statements(export)


def _statements(export: Any) -> list[str]:
    return [line for line in export["files"][0]["content"].splitlines() if not line.startswith("-- ")]


def test_no_secret_is_exported(shop: TestClient) -> None:
    for form in ("sql", "hcl", "cdktf"):
        export = exported(shop, form=form)
        assert len(export["variables"]) == 3
        assert not [secret for secret in SECRETS if secret in str(export["files"])]


def test_every_kind_is_exported_in_both_forms(shop: TestClient) -> None:
    kinds = {kind if kind != "relation" else "stream" for kind in KINDS}
    main, imports = exported(shop, form="hcl")["files"][:2]
    found = re.findall(r'^resource "leatstream_(\w+)" "(\w+)"', main["content"], re.MULTILINE)
    assert {kind for kind, _ in found} == {*kinds, "changelog"}
    imported = re.findall(r"to = leatstream_(\w+)\.(\w+)", imports["content"])
    assert imported == found


def test_the_cdktf_program_synthesizes_what_the_configuration_says(shop: TestClient, tmp_path: Path) -> None:
    configuration, program = exported(shop, form="hcl"), exported(shop, form="cdktf")
    for file in program["files"]:
        place = tmp_path / file["path"]
        place.parent.mkdir(parents=True, exist_ok=True)
        text = file["content"]
        place.write_bytes(base64.b64decode(text) if file["encoding"] == "base64" else text.encode())
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    formatted = [sys.executable, "-m", "ruff", "format", "--isolated", "--check", "--diff", "main.py"]
    assert subprocess.run(formatted, cwd=tmp_path, check=False).returncode == 0
    made = json.loads((tmp_path / "cdktf.out/stacks/leatstream/cdk.tf.json").read_text())
    main, imports = configuration["files"][:2]
    declared = re.findall(r'^resource "(\w+)"', main["content"], re.MULTILINE)
    assert Counter(declared) == {kind: len(found) for kind, found in made["resource"].items()}
    ids = [json.loads(one) for one in re.findall(r"id = (\".*\")$", imports["content"], re.MULTILINE)]
    assert [one["id"] for one in made["import"]] == ids
    assert set(made["variable"]) == {*program["variables"]} == {*configuration["variables"]}
    assert program["notes"] == configuration["notes"]
    (query,) = (one for one in made["resource"]["leatstream_query"].values() if one["name"] == "first")
    assert query["sql"].replace("$${", "${") == BODIES["queries/first"]["sql"].strip()
    (source,) = made["resource"]["leatstream_function_source"].values()
    assert source["content"] == BODIES["function-sources/scores"]["content"]


def test_names_choose_objects(shop: TestClient) -> None:
    def made(*names: str) -> list[str]:
        text = exported(shop, *names)["files"][0]["content"]
        return re.findall(
            r"^(?:CREATE(?: OR REPLACE)? [A-Z_ ]+|INSERT INTO|BEGIN APPLICATION) ([\w.\"]+)",
            text,
            re.MULTILINE,
        )

    assert made("store:k") == made("k") == ["k"]
    assert made("demo.public.pageviews") == ["demo.public.pageviews"]
    # A relation that a query makes is the query.
    assert made("demo.public.one_user") == made("query:first") == ["one_user"]
    assert made("demo.shop") == [
        "demo.shop",
        'demo.shop."Other"',
        "demo.shop.users",
        *("demo.shop.again",) * 2,
        "app",
    ]
    assert made("demo")[:3] == ["demo", "demo.public", "demo.shop"]
    assert len(made("demo")) == 12


@pytest.mark.parametrize(
    ("name", "status", "code", "words"),
    [
        ("nothing", 404, "not-found", "nothing"),
        ("store:nothing", 404, "not-found", "Store nothing"),
        ("topic:x", 422, "validation", "no kind of object"),
        ("a.b.c.d", 422, "validation", "not the name of one object"),
        ('"', 422, "validation", "not a name"),
    ],
)
def test_wrong_names_are_refused(client: TestClient, name: str, status: int, code: str, words: str) -> None:
    answer = client.get("/v1/catalog:export", params={"name": name})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert words in answer.json()["detail"]


def test_a_name_of_two_kinds_is_refused_with_both(client: TestClient) -> None:
    client.put("/v1/databases/k", json={})
    client.put("/v1/stores/k", json=BODIES["stores/k"] | {"schema_registry": None})
    answer = client.get("/v1/catalog:export", params={"name": "k"}).json()
    assert answer["errors"][0]["hint"] == "Write store:k or database:k."


def test_what_is_not_seen_is_not_exported(shop: TestClient) -> None:
    grants = [{"privilege": "select", "on": "relation", "name": "demo.public.pageviews"}]
    shop.put("/v1/roles/few", json={"grants": grants})
    shop.put("/v1/service-accounts/few", json={"roles": ["few"]})
    token = shop.post("/v1/tokens/few", json={"account": "few"}).json()["value"]
    with TestClient(shop.app, headers={"Authorization": f"Bearer {token}"}) as few:
        text = exported(few)["files"][0]["content"]
        assert "CREATE STREAM demo.public.pageviews" in text
        assert not re.search("one_user|STORE k|users|registry.example|scores", text)
        assert few.get("/v1/catalog:export", params={"name": "store:k"}).status_code == 404


def test_a_changelog_of_a_table_is_exported_as_it_may_be_written(fresh: Any) -> None:
    """A table's rows have no keys of records: with ``key_format`` it would be refused, or differ in each plan."""
    columns = [{"name": "id", "type": "BIGINT"}, {"name": "name", "type": "VARCHAR"}]
    table = {"columns": columns, "primary_key": ["id"]}
    changelog = {"kind": "changelog", "store": "pg", "columns": columns, "primary_key": ["id"]}
    bodies: dict[str, Any] = {
        "databases/demo": {},
        "stores/pg": {"postgres": {"host": "db.example.com", "database": "shop", "username": "leat"}},
        "stores/pg/entities/customers": {"postgres": table},
        "relations/demo.public.customers": changelog | {"value_format": "json"},
    }
    with TestClient(create_app(fresh.with_tables()), headers=fresh.headers) as client:
        for path, body in bodies.items():
            assert client.put(f"/v1/{path}", json=body).status_code == 201
        made = client.get("/v1/relations/demo.public.customers").json()
        assert made["key_format"] is None
        hcl = client.get("/v1/catalog:export", params={"format": "hcl", "name": "demo"}).json()
        assert "key_format" not in hcl["files"][0]["content"]
        assert client.delete("/v1/relations/demo.public.customers").status_code == 204
        again = client.post("/v1/statements", json={"sql": made["statement"]})
        assert again.status_code == 200, again.text


@pytest.mark.parametrize(
    "words",
    [
        {"postgresql.table.name": "customers"},
        {"PostgreSQL.Schema.Name": "public"},
        {"postgresql.db.name": "shop"},
    ],
)
def test_a_stream_over_a_table_is_exported_as_it_was_written(fresh: Any, words: dict[str, str]) -> None:
    """Its store's own words name the table, so 'topic' beside them is refused; its rows have no format."""
    columns = [{"name": "id", "type": "BIGINT"}]
    bodies: dict[str, Any] = {
        "databases/demo": {},
        "stores/pg": {"postgres": {"host": "db.example.com", "database": "shop", "username": "leat"}},
        "stores/pg/entities/customers": {"postgres": {"columns": columns}},
        "relations/demo.public.customers": {"store": "pg", "columns": columns, "properties": words},
    }
    with TestClient(create_app(fresh.with_tables()), headers=fresh.headers) as client:
        for path, body in bodies.items():
            assert client.put(f"/v1/{path}", json=body).status_code == 201, path
        made = client.get("/v1/relations/demo.public.customers").json()
        assert made["topic"] is None
        hcl = client.get("/v1/catalog:export", params={"format": "hcl", "name": "demo"}).json()
        stream = hcl["files"][0]["content"].partition('resource "leatstream_stream"')[2]
        assert "properties = {" in stream
        assert not re.search("value_format|topic ", stream)
        assert (
            client.put(
                "/v1/relations/demo.public.customers", json=bodies["relations/demo.public.customers"]
            ).status_code
            == 200
        )
        assert client.delete("/v1/relations/demo.public.customers").status_code == 204
        again = client.post("/v1/statements", json={"sql": made["statement"]})
        assert again.status_code == 200, again.text
        written = client.get("/v1/relations/demo.public.customers").json()["statement"]
        assert written.lower() == made["statement"].lower()
