"""Function sources and functions: by SQL and REST, from the file to what a driver is handed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

import pytest
from java_classes import JOIN, SAME, jar, load, udf_class
from starlette.testclient import TestClient

from leatstream.services.queries.reconcile.reconciler import reconcile_all

STREAM = "CREATE STREAM pageviews (viewtime BIGINT NOT NULL, userid VARCHAR) WITH ('value.format'='json')"
NO_TLS = "'type'=KAFKA, 'uris'='localhost:9092', 'tls.disabled'=TRUE"
SOURCE = "def twice(x):\n    return x + x\n\n\nclass Spread:\n" + "".join(
    f"    def {name}(self{arguments}):\n        return None\n"
    for name, arguments in (("create", ""), ("accumulate", ", a, x"), ("merge", ", a, b"), ("finish", ", a"))
)
TWICE = (
    "CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON"
    " WITH ('source.name'='mine', 'handler'='twice')"
)
SPREAD = (
    "CREATE FUNCTION spread(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON COMMENT 'range'"
    " WITH ('source.name'='mine', 'class.name'='Spread', 'timeout.seconds'=5)"
)
CALL = "CREATE STREAM doubled AS SELECT * FROM pageviews WHERE twice(viewtime) > 2"


class Sql:
    """Runs statements one by one, each with the context that the one before it left."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.context: dict[str, Any] = {}

    def __call__(self, text: str) -> dict[str, Any]:
        """The last result of a text that succeeds."""
        answer = self.client.post("/v1/statements", json={"sql": text, **self.context})
        assert answer.status_code == 200, answer.text
        self.context = answer.json()["context"]
        found: dict[str, Any] = answer.json()["results"][-1]
        return found

    def table(self, text: str) -> list[dict[str, Any]]:
        """Rows of the last result, by column name."""
        found = self(text)
        names = [column["name"] for column in found["columns"]]
        return [dict(zip(names, row, strict=True)) for row in found["rows"]]

    def properties(self, text: str) -> dict[str, Any]:
        """What DESCRIBE says."""
        return {row["property"]: row["value"] for row in self.table(text)}

    def refused(self, text: str) -> str:
        """The code of a statement that fails."""
        answer = self.client.post("/v1/statements", json={"sql": text, **self.context})
        assert answer.status_code >= 400, answer.text
        return str(answer.json()["code"])


@pytest.fixture
def shop(client: TestClient) -> Sql:
    """A stream, and a function source that was sent as a file."""
    sql = Sql(client)
    sql(f"CREATE STORE k WITH ({NO_TLS})")
    sql("CREATE ENTITY pageviews IN STORE k WITH ('topic.partitions'=3, 'topic.replicas'=1)")
    sql("CREATE DATABASE demo; USE DATABASE demo; USE STORE k")
    sql(STREAM)
    text = "CREATE FUNCTION_SOURCE mine COMMENT 'own' WITH ('file'='@/home/ann/mine.py')"
    files = {"/home/ann/mine.py": base64.b64encode(SOURCE.encode()).decode()}
    answer = client.post("/v1/statements", json={"sql": text, "files": files})
    assert answer.status_code == 200, answer.text
    return sql


def told(client: TestClient, text: str) -> dict[str, Any]:
    answer = client.post("/v1/statements", json={"sql": text, "database": "demo", "store": "k"})
    assert answer.status_code >= 400, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_made_listed_described_and_dropped(shop: Sql) -> None:
    shop(TWICE)
    shop(SPREAD)
    (source,) = shop.table("LIST FUNCTION_SOURCES")
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    assert (source["name"], source["file"], source["language"]) == ("mine", "mine.py", "python")
    assert (source["digest"], source["comment"]) == (digest, "own")
    mine = [f for f in shop.table("SHOW FUNCTIONS") if f["category"] == "User"]
    assert [(f["name"], f["arguments"], f["returns"], f["kind"]) for f in mine] == [
        ("spread", "x BIGINT", "BIGINT", "aggregate"),
        ("twice", "x BIGINT", "BIGINT", "scalar"),
    ]
    described = shop.properties("DESCRIBE FUNCTION spread")
    assert (described["handler"], described["timeout.seconds"], described["comment"]) == (
        "Spread",
        "5",
        "range",
    )
    assert shop.properties("DESCRIBE FUNCTION_SOURCE mine")["functions"] == "spread, twice"
    assert shop.properties("DESCRIBE FUNCTION upper")["example"] == "upper('leat') = \"LEAT\""
    assert shop.refused("DROP FUNCTION_SOURCE mine") == "has-dependents"
    assert shop.refused("DROP FUNCTION twice(VARCHAR)") == "not-found"
    shop("DROP FUNCTION twice(x BIGINT)")
    shop("DROP FUNCTION spread(BIGINT); DROP FUNCTION IF EXISTS spread; DROP FUNCTION_SOURCE mine")
    assert shop.table("LIST FUNCTION_SOURCES") == []


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (TWICE.replace("'mine'", "'gone'"), "not-found", "Function source gone does not exist."),
        (TWICE.replace("'twice')", "'thrice')"), "validation", "no top-level function or class thrice"),
        (
            TWICE.replace("x BIGINT", "x BIGINT, y BIGINT"),
            "validation",
            "takes 1 arguments, SQL would give 2",
        ),
        (
            TWICE.replace("FUNCTION twice", "FUNCTION upper"),
            "already-exists",
            "upper is a built-in function.",
        ),
        (TWICE.replace("PYTHON", "JAVA"), "validation", "Function source mine holds python, not java."),
        (
            TWICE.replace("'handler'='twice'", "'hander'='twice'"),
            "invalid-property",
            "Property hander is not known here",
        ),
        (TWICE.replace("RETURNS BIGINT", "RETURNS NUMBER"), "type-mismatch", "Unknown type 'NUMBER'"),
        ("CREATE FUNCTION_SOURCE b WITH ('file'='@b.py')", "invalid-property", "was not sent"),
        ("CREATE FUNCTION_SOURCE b WITH ('file'='b.py', 'content'='def f(:')", "validation", "is no Python"),
        (
            "CREATE FUNCTION_SOURCE b WITH ('file'='b.txt', 'content'='x')",
            "validation",
            "ends in .py or .jar",
        ),
        ("CREATE FUNCTION_SOURCE mine WITH ('file'='b.py', 'content'='x=1')", "already-exists", "mine"),
    ],
)
def test_what_is_wrong_is_told(shop: Sql, client: TestClient, text: str, code: str, words: str) -> None:
    problem = told(client, text)
    assert problem["code"] == code
    assert words in problem["errors"][0]["detail"]
    checked = client.post("/v1/statements:validate", json={"sql": text, "database": "demo"}).json()
    assert checked["valid"] is ("was not sent" in words)


JAR = jar(
    shop__Same=SAME,
    shop__Raw=udf_class("shop.Raw", 1, [load(1)], typed=False),
    shop__Hidden=udf_class("shop.Hidden", 1, [load(1)], constructor="(I)V"),
    shop__Closed=udf_class("shop.Closed", 1, [load(1)], access=0),
    shop__Other=udf_class("shop.Other", 1, [load(1)], interfaces=["java/util/function/Function"]),
    shop__Broken=SAME[:40],
)
ECHO = (
    "CREATE FUNCTION echo(x BIGINT) RETURNS BIGINT LANGUAGE JAVA"
    " WITH ('source.name'='classes', 'class.name'='shop.Same')"
)


@pytest.fixture
def classes(shop: Sql, client: TestClient) -> Sql:
    """A jar that was sent as a file."""
    text = "CREATE FUNCTION_SOURCE classes WITH ('file'='@build/shop.jar')"
    answer = client.post("/v1/statements", json={"sql": text, "files": {"build/shop.jar": JAR}})
    assert answer.status_code == 200, answer.text
    return shop


def test_a_function_in_java_goes_to_the_job_with_its_jar(classes: Sql, fresh: Any) -> None:
    classes(ECHO)
    found = classes.properties("DESCRIBE FUNCTION echo")
    assert (found["language"], found["handler"], found["timeout.seconds"]) == ("java", "shop.Same", None)
    classes("CREATE STREAM same AS SELECT echo(viewtime) AS v FROM pageviews")
    with fresh.units(write=False) as unit:
        (query,) = unit.queries.page()
    (spec,) = query.job["functions"]
    assert (spec["language"], spec["handler"], spec["file"]) == ("java", "shop.Same", "shop.jar")
    assert query.code == {spec["digest"]: JAR}
    assert query.job["mode"] == "micro_batch"
    assert classes.refused("DROP FUNCTION echo") == "has-dependents"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (ECHO.replace("Same", "Gone"), "validation", "shop.jar has no class shop.Gone."),
        (
            ECHO.replace("x BIGINT", "x BIGINT, y BIGINT"),
            "validation",
            "takes 1 arguments (UDF1), SQL would give 2",
        ),
        (ECHO.replace("Same", "Raw"), "validation", "must say the types of UDF1"),
        (ECHO.replace("Same", "Hidden"), "validation", "a public constructor without arguments"),
        (ECHO.replace("Same", "Closed"), "validation", "must be a public class"),
        (ECHO.replace("Same", "Other"), "validation", "UDF0 to UDF22; it implements none of them itself"),
        (ECHO.replace("Same", "Broken"), "validation", "The class shop.Broken of shop.jar cannot be read."),
        (ECHO.replace("JAVA", "PYTHON"), "validation", "holds java, not python"),
        (ECHO.replace("shop.Same'", "shop.Same', 'timeout.seconds'=5"), "unsupported", "no time-out"),
        (
            "CREATE FUNCTION_SOURCE b WITH ('file'='b.jar', 'content'='UEsDBA==')",
            "validation",
            "b.jar is no jar.",
        ),
        ("CREATE FUNCTION_SOURCE b WITH ('file'='b.jar', 'content'='é')", "validation", "not in base64"),
    ],
)
def test_what_is_wrong_of_java_is_told(
    classes: Sql, client: TestClient, text: str, code: str, words: str
) -> None:
    problem = told(client, text)
    assert problem["code"] == code
    assert words in problem["errors"][0]["detail"]
    assert client.post("/v1/statements:validate", json={"sql": text}).json()["valid"] is False


def test_a_new_jar_must_have_what_functions_call(classes: Sql, client: TestClient) -> None:
    classes(ECHO)
    for body, words in (
        ({"file": "shop.jar", "content": jar(shop__Join=JOIN)}, "has no class shop.Same"),
        ({"file": "mine.py", "content": SOURCE}, "would turn from java to python"),
    ):
        answer = client.put("/v1/function-sources/classes", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "validation")
        assert words in answer.json()["detail"]


def test_users_code_shares_no_driver(classes: Sql, shop: Sql, client: TestClient) -> None:
    """Java runs inside the JVM, and Spark's Python workers serve every query of it, one after another."""
    classes(ECHO)
    shop(TWICE)
    shared = "FROM pageviews QUERY WITH ('query.driver'='shared')"
    nested = f"FROM (SELECT twice(viewtime) AS v {shared.partition(' QUERY')[0]}) s"
    for select, told_of in (
        (f"SELECT echo(viewtime) AS a {shared}", "Function echo is users' code"),
        (f"SELECT twice(viewtime) AS a {shared}", "Function twice is users' code"),
        (
            f"SELECT viewtime {shared.replace('QUERY', 'WHERE twice(viewtime) > 1 QUERY')}",
            "Function twice is",
        ),
        (f"SELECT v {nested} QUERY WITH ('query.driver'='shared')", "Function twice is users' code"),
        (f"SELECT twice(echo(viewtime)) AS a {shared}", "Functions echo, twice are users' code"),
    ):
        problem = told(client, f"CREATE STREAM d AS {select}")
        assert problem["code"] == "unsupported"
        assert told_of in problem["errors"][0]["detail"]
        assert problem["errors"][0]["position"]["line"] == 1


def test_a_shared_query_of_an_older_version_gets_a_driver_of_its_own(shop: Sql, fresh: Any) -> None:
    """It was planned when functions in Python could share."""
    shop(TWICE)
    shop("CREATE STREAM d AS SELECT twice(viewtime) AS a FROM pageviews")
    fresh.drivers.tokens |= {"shared": "t", "alone": "t"}
    fresh.drivers.shared["shared"] = []
    with fresh.units() as unit:
        (query,) = unit.queries.page(limit=10)
        unit.queries.update(replace(query, job={**query.job, "driver": "shared"}))
        unit.commit()
    reconcile_all(fresh.env)
    with fresh.units(write=False) as unit:
        assert unit.queries.find_by_id(query.meta.id).status.driver_id == "alone"


def test_two_jars_with_one_class_do_not_go_together(classes: Sql, client: TestClient) -> None:
    body = {"file": "more.jar", "content": jar(shop__Same=JOIN, shop__Join=JOIN)}
    assert client.put("/v1/function-sources/more", json=body).status_code == 201
    classes(ECHO)
    classes(
        "CREATE FUNCTION both(x BIGINT, y BIGINT) RETURNS VARCHAR LANGUAGE JAVA"
        " WITH ('source.name'='more', 'class.name'='shop.Join')"
    )
    problem = told(client, "CREATE STREAM d AS SELECT echo(viewtime) AS a, both(1, 2) AS b FROM pageviews")
    assert problem["code"] == "unsupported"
    assert "both have a class shop.Same" in problem["detail"]


def test_a_query_keeps_its_version_until_it_is_restarted(shop: Sql, client: TestClient, fresh: Any) -> None:
    shop(TWICE)
    client.post("/v1/statements", json={"sql": CALL, "database": "demo", "store": "k"}).raise_for_status()
    assert shop.refused("DROP FUNCTION twice") == "has-dependents"
    old = hashlib.sha256(SOURCE.encode()).hexdigest()

    def job() -> tuple[Any, set[str]]:
        with fresh.units(write=False) as unit:
            (query,) = unit.queries.page()
            return query.job["functions"][0], set(query.code)

    spec, code = job()
    assert (spec["name"], spec["function"], spec["arguments"]) == ("leat_fn_0", "twice", ["BIGINT"])
    assert (spec["digest"], code) == (old, {old})
    changed = SOURCE.replace("x + x", "2 * x")
    body = {"file": "mine.py", "content": changed, "restart_queries": False}
    assert client.put("/v1/function-sources/mine", json=body).status_code == 200
    assert job()[0]["digest"] == old
    client.post("/v1/queries/doubled:restart").raise_for_status()
    new = hashlib.sha256(changed.encode()).hexdigest()
    assert (job()[0]["digest"], job()[1]) == (new, {new})
    broken = {"file": "mine.py", "content": changed.replace("def twice(x)", "def twice(x, y)")}
    answer = client.put("/v1/function-sources/mine", json=broken)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation")


def test_calls_are_checked_with_their_place(shop: Sql, client: TestClient) -> None:
    shop(TWICE)
    shop(SPREAD)
    text = "CREATE STREAM d AS SELECT twice(viewtime, 1) AS a, spread(viewtime) AS b, twise(1) AS c FROM pageviews"
    errors = told(client, text)["errors"]
    assert [(e["detail"], text[e["position"]["offset"] :].split("(")[0]) for e in errors] == [
        ("twice takes 1 argument, not 2.", "twice"),
        ("The aggregate spread cannot stand here.", "spread"),
        ("There is no function twise.", "twise"),
    ]


def test_rest_puts_gets_lists_and_deletes(client: TestClient) -> None:
    source = {"file": "mine.py", "content": SOURCE, "comment": None}
    made = client.put("/v1/function-sources/mine", json=source)
    assert (made.status_code, made.headers["Location"]) == (201, "/v1/function-sources/mine")
    assert client.put("/v1/function-sources/mine", json=source).json()["generation"] == 1
    body = {
        "arguments": [{"name": "x", "type": "BIGINT"}],
        "returns": "BIGINT",
        "source": "mine",
        "handler": "Spread",
    }
    made = client.put("/v1/functions/spread", json=body)
    assert made.status_code == 201, made.text
    assert (made.json()["aggregate"], made.json()["timeout_seconds"]) == (True, 60)
    assert [f["name"] for f in client.get("/v1/functions").json()["items"]] == ["spread"]
    assert client.put("/v1/functions/spread", json={**body, "returns": "NOPE"}).status_code == 422
    large = client.put("/v1/function-sources/big", json={**source, "content": "#" * (512 * 1024 + 1)})
    assert large.status_code == 422
    assert client.delete("/v1/function-sources/mine").status_code == 409
    assert client.delete("/v1/functions/spread").status_code == 204
    assert client.delete("/v1/function-sources/mine").status_code == 204
    assert client.get("/v1/function-sources/mine").status_code == 404


def test_planned_functions_count_as_there(shop: Sql, client: TestClient) -> None:
    planned = {
        "name": "thrice",
        "arguments": [{"name": "x", "type": "BIGINT"}],
        "returns": "BIGINT",
        "source": "new",
        "handler": "thrice",
    }
    source = {"name": "new", "file": "n.py", "content": "def thrice(x): return x"}
    sql = CALL.replace("twice", "thrice")
    body = {"sql": sql, "database": "demo", "store": "k"}
    assert client.post("/v1/statements:validate", json=body).json()["valid"] is False
    assume = {"functions": [planned], "function_sources": [source]}
    assert client.post("/v1/statements:validate", json={**body, "assume": assume}).json()["valid"] is True


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM two AS WITH v AS (SELECT twice(viewtime) AS n FROM pageviews) SELECT * FROM v",
        "BEGIN APPLICATION app"
        " CREATE VIRTUAL STREAM virtual.public.v AS SELECT twice(viewtime) AS n FROM pageviews;"
        " CREATE STREAM two AS SELECT * FROM virtual.public.v;"
        " END APPLICATION",
    ],
    ids=["WITH", "virtual"],
)
def test_functions_are_called_in_named_queries_too(shop: Sql, text: str) -> None:
    """They were not found there."""
    shop(TWICE)
    shop(text)
    assert shop.refused("DROP FUNCTION twice") == "has-dependents"
