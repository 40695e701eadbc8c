"""Statements, and bad input with exact places."""

from __future__ import annotations

import pytest

from leatstream.errors import RequestError
from leatstream.plan.logical import Window
from leatstream.sql import statements as s
from leatstream.sql.parser import parse


def one(text: str) -> s.Statement:
    (statement,) = parse(text)
    return statement


def test_statements_and_their_places() -> None:
    text = (
        ' CREATE DATABASE demo ;\n-- next\nuse schema Demo."Pub"; ;\r\nLIST RELATIONS IN SCHEMA demo.public;'
    )
    first, second, third = parse(text)
    assert isinstance(first, s.CreateDatabase)
    assert (first.text, first.name.parts) == ("CREATE DATABASE demo", ("demo",))
    assert isinstance(second, s.Use)
    assert second.name.parts == ("demo", "Pub")
    assert (second.position.line, second.position.column) == (3, 1)
    assert text[second.name.position.offset :].startswith('Demo."Pub"')
    assert isinstance(third, s.ListObjects)
    assert (third.position.line, third.within and third.within.parts) == (4, ("demo", "public"))


def test_create_stream() -> None:
    stream = one(
        'CREATE STREAM IF NOT EXISTS a.b."C" (x BIGINT NOT NULL,'
        ' "Y" STRUCT<a ARRAY<INT>, "b c" DECIMAL(3, 1)>)'
        " WITH ('Store' = 'MSK', 'topic.partitions' = 3, 'f' = -1.5, 'on' = TRUE,"
        " 'k' = PRIMITIVE, 'r' = \"Sr\")"
    )
    assert isinstance(stream, s.CreateStream)
    assert stream.name.parts == ("a", "b", "C")
    assert stream.if_not_exists
    assert [(c.name, c.type, c.not_null) for c in stream.columns] == [
        ("x", "BIGINT", True),
        ("Y", 'STRUCT<a ARRAY<INT>, "b c" DECIMAL(3, 1)>', False),
    ]
    assert {k: (v.value, v.kind) for k, v in stream.properties.items()} == {
        "store": ("MSK", "string"),
        "topic.partitions": (3, "number"),
        "f": (-1.5, "number"),
        "on": (True, "keyword"),
        "k": ("PRIMITIVE", "keyword"),
        "r": ("Sr", "identifier"),
    }


def test_continuous_statements() -> None:
    created = one("CREATE STREAM x WITH ('store'='k') AS SELECT a FROM t QUERY WITH ('mode'='auto');")
    assert isinstance(created, s.CreateStreamAs)
    assert created.query_properties["mode"].value == "auto"
    assert created.text.endswith("('mode'='auto')")
    changelog = one(
        "CREATE CHANGELOG IF NOT EXISTS x AS SELECT a FROM TUMBLE(t, SIZE 5 MINUTES) w GROUP BY a"
    )
    assert isinstance(changelog, s.CreateChangelogAs)
    assert changelog.if_not_exists
    assert changelog.select.args["from_"].this.meta["window"] == Window("tumble", 300_000, 300_000)
    inserted = one("INSERT INTO d.s.x WITH a AS (SELECT b FROM t) SELECT b FROM a")
    assert isinstance(inserted, s.InsertInto)
    assert inserted.properties == {}
    with pytest.raises(RequestError, match="QUERY WITH"):
        one("SELECT a FROM t QUERY WITH ('mode'='auto')")


def test_a_select_of_its_own_may_have_a_limit() -> None:
    for text, limit in (
        ("SELECT a FROM t LIMIT 5", 5),
        ("(SELECT a FROM t LIMIT 7)", 7),
        ("SELECT a FROM t FETCH FIRST 7 ROWS ONLY", 7),
        ("SELECT a FROM t FETCH NEXT ROW ONLY", 1),
        ("SELECT a FROM t", None),
    ):
        found = one(text)
        assert isinstance(found, s.Select)
        assert found.limit == limit
        assert found.select.meta["refused"] == []
    union = one("SELECT a FROM t UNION ALL SELECT a FROM t LIMIT 2")
    assert isinstance(union, s.Select)
    assert union.limit == 2
    inner = one("SELECT a FROM (SELECT a FROM t LIMIT 3)")
    assert isinstance(inner, s.Select)
    assert inner.limit is None
    described = one("DESCRIBE SELECT a FROM t LIMIT 1")
    assert isinstance(described, s.DescribeStatement)
    assert isinstance(described.statement, s.Select)
    for wrong in ("0", "1.5", "'3'", "a", "1 + 1", "99999999999"):
        with pytest.raises(RequestError, match="LIMIT") as caught:
            one(f"SELECT a FROM t LIMIT {wrong}")
        assert caught.value.code == "sql-syntax"
        assert caught.value.faults[0].position is not None


@pytest.mark.parametrize(
    ("text", "kind", "noun"),
    [
        ("DROP TOPIC x IN STORE k", s.Drop, "entity"),
        ("DROP ENTITY IF EXISTS a.b", s.Drop, "entity"),
        ("DROP NAMESPACE x", s.Drop, "schema"),
        ("DROP CHANGELOG x", s.Drop, "changelog"),
        ("LIST CHANGELOGS IN SCHEMA d.s", s.ListObjects, "changelogs"),
        ("DESCRIBE CHANGELOG x", s.Describe, "changelog"),
        ("DROP QUERY x", s.Drop, "query"),
        ("DROP DATA STORE x", s.Drop, "store"),
        ("SHOW TOPICS IN STORE k", s.ListObjects, "entities"),
        ("LIST ENTITIES IN DATA STORE k", s.ListObjects, "entities"),
        ("show namespaces in database d", s.ListObjects, "schemas"),
        ("LIST QUERIES", s.ListObjects, "queries"),
        ("DESCRIBE STREAM a.b.c", s.Describe, "stream"),
        ("DESCRIBE TOPIC a", s.Describe, "entity"),
        ("USE STORE k", s.Use, "store"),
    ],
)
def test_nouns_and_synonyms(text: str, kind: type, noun: str) -> None:
    statement = one(text)
    assert isinstance(statement, kind)
    assert statement.noun == noun  # type: ignore[attr-defined]


def test_other_statements() -> None:
    shown = one("PRINT ENTITY a.b IN STORE k WITH ('from_beginning', 'limit' = 3)")
    assert isinstance(shown, s.Print)
    assert {k: v.value for k, v in shown.properties.items()} == {"from_beginning": True, "limit": 3}
    assert shown.text.endswith("3)")
    assert isinstance(one("TERMINATE QUERY q"), s.TerminateQuery)
    assert isinstance(one("RESTART QUERY q"), s.RestartQuery)
    described = one("DESCRIBE CREATE STREAM x AS SELECT a FROM t")
    assert isinstance(described, s.DescribeStatement)
    assert isinstance(described.statement, s.CreateStreamAs)
    assert described.statement.text == "CREATE STREAM x AS SELECT a FROM t"
    assert isinstance(one("CREATE TOPIC x IN STORE k WITH ('kafka.partitions'=1)"), s.CreateEntity)
    assert isinstance(one("CREATE STORE k WITH ('type'=KAFKA)"), s.CreateStore)
    assert isinstance(one("CREATE SCHEMA x IN DATABASE d"), s.CreateSchema)
    assert parse(" ; -- nothing\n") == []


# code, text with the place between » and «
BAD = [
    ("sql-syntax", "SELECT a,»,« b FROM t"),
    ("sql-syntax", "SELECT a, »FROM« t"),
    ("sql-syntax", "SELECT »FROM« t"),
    ("sql-syntax", "SELECT a FROM t WHRE »x« = 1"),
    ("sql-syntax", "SELECT a FROM t WHERE»«"),
    ("sql-syntax", "SELECT a FROM t WHERE a = »)«"),
    ("sql-syntax", "SELECT (a »FROM« t"),
    ("sql-syntax", "SELECT a b »c« FROM t"),
    ("sql-syntax", "SELECT a +»«"),
    ("sql-syntax", "SELECT f(a,»)« FROM t"),
    ("sql-syntax", "SELECT CASE a »END« FROM t"),
    ("sql-syntax", "SELECT CASE WHEN a »ELSE« 1 END FROM t"),
    ("sql-syntax", "SELECT a BETWEEN 1 »,« 2 FROM t"),
    ("sql-syntax", "SELECT 'abc' »'def'« FROM t"),
    ("sql-syntax", "SELECT »1a« FROM t"),
    ("sql-syntax", "SELECT »#«a FROM t"),
    ("sql-syntax", "SELECT a FROM t\n WHERE b = »'«open"),
    ("sql-syntax", 'SELECT »"«open FROM t'),
    ("sql-syntax", "SELECT a »/*« open FROM t"),
    ("sql-syntax", "CREATE STREAM x WITH ('store' »'x'«) AS SELECT a FROM t"),
    ("sql-syntax", "CREATE STREAM x WITH (»store« = 'x') AS SELECT a FROM t"),
    ("sql-syntax", "CREATE STREAM x WITH ('a' = 1»«"),
    ("sql-syntax", "CREATE STREAM x WITH ('a' = »)«"),
    ("sql-syntax", "CREATE STREAM »select« (a INT) WITH ('a'=1)"),
    ("sql-syntax", "CREATE STREAM x (a ARRAY<INT) WITH ('topic'='y')»«"),
    ("sql-syntax", "CREATE »THING« x"),
    ("sql-syntax", "CREATE DATABASE »a.b«"),
    ("sql-syntax", "»SELEC« a FROM t"),
    ("sql-syntax", "DROP STREAM x »y«"),
    ("sql-syntax", "USE SCHEMA »a.b.c«"),
    ("sql-syntax", "SELECT a FROM t JOIN u WITHIN »FIVE« MINUTES ON a = b"),
    ("invalid-property", "CREATE STREAM x WITH ('a'=1, »'A'«=2) AS SELECT a FROM t"),
    ("sql-syntax", "CREATE CHANGELOG »x« (a INT) WITH ('topic'='x')"),
    ("sql-syntax", "CREATE CHANGELOG x (a INT, PRIMARY KEY (a), »PRIMARY KEY« (a))"),
    ("sql-syntax", "CREATE CHANGELOG »x« (a INT, PRIMARY KEY (a)) AS SELECT a FROM t GROUP BY a"),
    ("unsupported", "CREATE CHANGELOG »x« WITH ('topic'='x')"),
    ("sql-syntax", "SELECT a FROM t JOIN u WITHIN (BEFORE 1 DAY, »BEFORE« 1 DAY) ON t.a = u.a"),
    ("sql-syntax", "SELECT a FROM t JOIN u »WITHIN (BEFORE 0 DAYS)« ON t.a = u.a"),
    ("sql-syntax", "SELECT a FROM t JOIN u WITHIN 1 DAY »GRACE 400 DAYS« ON t.a = u.a"),
    ("unsupported", "CREATE »MATERIALIZED« VIEW x (a BIGINT)"),
    ("unsupported", "CREATE »VIRTUAL« STREAM virtual.a.b AS SELECT a FROM t"),
    ("unsupported", "»MERGE« INTO x USING y"),
    ("sql-syntax", "SELECT a FROM TUMBLE(t, »1« MINUTE)"),
    ("sql-syntax", "SELECT a FROM TUMBLE(t, SIZE 1 »FORTNIGHT«)"),
    ("sql-syntax", "SELECT a FROM TUMBLE(t, »SIZE 0 MINUTES«)"),
    ("sql-syntax", "SELECT a FROM TUMBLE(t, SIZE 1 MINUTE»,« ADVANCE BY 1 MINUTE)"),
    ("sql-syntax", "SELECT a FROM HOP(t, SIZE 1 MINUTE»)«"),
    ("sql-syntax", "SELECT a FROM HOP(t, SIZE 1 MINUTE, »ADVANCE BY 45 SECONDS«)"),
    ("sql-syntax", "SELECT a FROM HOP(t, SIZE 1 MINUTE, »ADVANCE BY 2 MINUTES«)"),
    ("sql-syntax", "SELECT a FROM HOP(t, SIZE 1 DAY, »ADVANCE BY 1 SECOND«)"),
    ("sql-syntax", "SELECT a FROM t GROUP BY ROLLUP (a»«"),
    ("sql-syntax", "SELECT a FROM t GROUP BY GROUPING SETS ((a), (b)»«"),
    ("unsupported", "SELECT a FROM t GROUP BY GROUPING SETS (»ROLLUP« (a))"),
    ("too-complex", "SELECT a FROM t GROUP BY »CUBE (a, b, c, d, e, f, g)«"),
    ("too-complex", "SELECT a FROM t GROUP BY CUBE (a, b, c, d), »CUBE (e, f, g)«"),
    ("sql-syntax", "CREATE CHANGELOG c »SELECT« a FROM t GROUP BY a"),
    ("sql-syntax", "SELECT a FROM CUMULATE(t, SIZE 1 HOUR»)«"),
    ("sql-syntax", "SELECT a FROM CUMULATE(t, SIZE 1 HOUR, »ADVANCE« BY 1 MINUTE)"),
    ("sql-syntax", "SELECT a FROM CUMULATE(t, SIZE 1 HOUR, »STEP 7 MINUTES«)"),
    ("sql-syntax", "SELECT a FROM session(t, »SIZE« 5 MINUTES)"),
    ("sql-syntax", "SELECT a FROM session(t, »GAP 0 MINUTES«)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PARTITION BY a»)«"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (MEASURES A.b»,« C.d AS c PATTERN (A) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (ONE ROW PER »MATCHES« PATTERN (A) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (AFTER MATCH SKIP »OVER« PATTERN (A) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A+»*«) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (»A{3,2}«) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A{»}«) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A»{,}«) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A{»1.5«}) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN ((A|B»«"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A »,« B) DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A) WITHIN 1 »FORTNIGHT« DEFINE A AS TRUE)"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A)»)«"),
    ("sql-syntax", "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (A) SUBSET u = »A« DEFINE A AS TRUE)"),
    (
        "sql-syntax",
        "SELECT a FROM t WITH ('a'=1) MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS TRUE) »WITH« ('a'=1)",
    ),
    ("too-complex", "SELECT a FROM t MATCH_RECOGNIZE (»PATTERN ((A{100}){11})« DEFINE A AS TRUE)"),
    (
        "too-complex",
        "SELECT a FROM t MATCH_RECOGNIZE (PATTERN (»PERMUTE(A, B, C, D, E, F)«) DEFINE A AS TRUE)",
    ),
    ("sql-syntax", "SELECT running first»(«a) FROM t"),
    ("sql-syntax", "SELECT a »?« FROM t"),
    ("unsupported", "SELECT a FROM t JOIN u WITHIN 1 DAY »USING« (a)"),
    ("unsupported", "SELECT count(*) »OVER« (PARTITION BY a) FROM t"),
    ("sql-syntax", "SELECT a FROM t WHERE EXISTS (»b«)"),
    ("sql-syntax", "SELECT a FROM t LIMIT 1 »FETCH« FIRST 1 ROW ONLY"),
    ("sql-syntax", "SELECT a FROM t FETCH »5« ROWS ONLY"),
    ("sql-syntax", "SELECT a FROM t FETCH FIRST 5 »PERCENT«"),
    ("unsupported", "SELECT a FROM t FETCH NEXT 5 ROWS »WITH« TIES"),
    ("unsupported", "SELECT »(«a, b) FROM t"),
    ("sql-syntax", "INSERT INTO x VALUES (1»«;"),
    ("sql-syntax", "INSERT INTO x VALUES (1, »a«)"),
    ("sql-syntax", "INSERT INTO x VALUES (»upper«('a'))"),
    ("sql-syntax", "INSERT INTO x VALUES »1«"),
    ("sql-syntax", "INSERT INTO x VALUES (»)«"),
    ("sql-syntax", "INSERT INTO x VALUES (1 »+« 2)"),
    ("sql-syntax", "INSERT INTO x (»a.b«) VALUES (1)"),
    ("sql-syntax", "INSERT INTO x (a) VALUES (1) »SELECT« 2"),
    ("sql-syntax", "INSERT INTO x WITH ('a'=1) »VALUES« (1)"),
    ("sql-syntax", "INSERT INTO ENTITY x »VALUES«('{}')"),
    ("sql-syntax", "INSERT INTO ENTITY x VALUE(»1«)"),
    ("sql-syntax", "INSERT INTO ENTITY x VALUE('{}'»,« '{}')"),
    ("sql-syntax", "INSERT INTO ENTITY x VALUE('{}')»,« ('{}')"),
    ("type-mismatch", "INSERT INTO x VALUES (X»'0g'«)"),
    ("unsupported", "INSERT INTO x »(«a) SELECT a FROM t"),
    ("unsupported", "CREATE OR REPLACE »ENTITY« x"),
    ("sql-syntax", "CREATE OR »DATABASE« x"),
    ("sql-syntax", "CREATE OR REPLACE STREAM »IF NOT EXISTS« x (a INT) WITH ('a'=1)"),
    ("sql-syntax", "CREATE DATABASE x COMMENT »y«"),
    ("sql-syntax", "CREATE STREAM x (a INT COMMENT»)« WITH ('a'=1)"),
    ("sql-syntax", "UPDATE »STREAM« x WITH ('a'=1)"),
    ("sql-syntax", "UPDATE STORE x»«"),
    ("sql-syntax", "UPDATE ENTITY x IN STORE k »SET« ('a'=1)"),
    ("sql-syntax", "DESCRIBE QUERY q »r«"),
    ("sql-syntax", "GENERATE »STREAM« FROM ENTITY x"),
    ("sql-syntax", "GENERATE COLUMNS »FOR« ENTITY x"),
    ("sql-syntax", "GENERATE TEMPLATE FOR »STREAM« x"),
    ("unsupported", "DROP STREAM x »CASCADE«"),
]


@pytest.mark.parametrize(("code", "marked"), BAD)
def test_bad_input(code: str, marked: str) -> None:
    before, _, rest = marked.partition("»")
    place, _, after = rest.partition("«")
    text = before + place + after
    with pytest.raises(RequestError) as caught:
        parse("\n" + text)
    (fault,) = caught.value.faults
    assert caught.value.code == code, fault
    assert fault.position is not None
    found = (fault.position.offset - 1, fault.position.length)
    assert found == (len(before), len(place)), fault
    line_start = text.rfind("\n", 0, len(before)) + 1
    assert fault.position.column == len(before) - line_start + 1
    assert fault.position.line == 2 + text.count("\n", 0, len(before))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "SELECT " + "(" * 10_000 + "1" + ")" * 10_000 + " FROM t",
        "SELECT " + "f(" * 5_000 + "1" + ")" * 5_000 + " FROM t",
        "SELECT a FROM " + "(SELECT a FROM " * 3_000 + "t" + ")" * 3_000,
        "SELECT " + "CASE WHEN a THEN " * 3_000 + "1 FROM t",
        "SELECT " + "NOT " * 5_000 + "a FROM t",
        "SELECT " + "- " * 5_000 + "a FROM t",
        "SELECT a" + "[a" * 3_000 + "]" * 3_000 + " FROM t",
        "SELECT " + " + ".join(["1"] * 5_000) + " FROM t",
        "SELECT " + "a, " * 30_000 + "a FROM t",
        "SELECT a FROM t WHERE " + " OR ".join(["a = 1"] * 4_000),
        "INSERT INTO t VALUES (" + "ARRAY[" * 3_000 + "]" * 3_000 + ")",
        "INSERT INTO t VALUES " + ", ".join(["(1)"] * 1_001),
    ],
)
def test_too_complex(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(text)
    assert caught.value.code == "too-complex"
    assert caught.value.faults[0].position is not None


def test_long_but_flat_statements_pass() -> None:
    ors = " OR ".join(f"a = {i}" for i in range(900))
    columns = ", ".join(f"a AS c{i}" for i in range(500))
    assert isinstance(one(f"SELECT {columns} FROM t WHERE {ors}"), s.Select)


def test_sqlglot_reads_the_dialect() -> None:
    import sqlglot
    from sqlglot import exp

    from leatstream.sql.dialect import Leat

    tree = sqlglot.parse_one("SELECT a->b FROM t JOIN u WITHIN 5 MINUTES ON t.x = u.x", read=Leat)
    assert isinstance(tree, exp.Select)
    # The other dialects are as they were.
    assert sqlglot.parse_one("SELECT a,, b FROM t", read="spark") is not None


def test_a_cast_before_a_comparison() -> None:
    """The sign < after a type of no parts is no beginning of its parts."""
    found = one("SELECT a FROM s WHERE a::BIGINT < 3 AND b > 2 AND c::ARRAY<BIGINT> < d")
    assert isinstance(found, s.Select)
    where = found.select.args["where"].this
    assert [type(part).__name__ for part in where.flatten()] == ["LT", "GT", "LT"]


@pytest.mark.parametrize("clause", ["WHERE (a > 1)", "GROUP BY a HAVING (a > 1)", "MINUS (SELECT 1 FROM t)"])
def test_unnest_without_an_alias_before_parentheses(clause: str) -> None:
    found = one(f"SELECT a FROM s CROSS JOIN UNNEST(b) {clause}")
    assert isinstance(found, s.Select)
    select = found.select if clause[0] != "M" else found.select.this
    assert select.args["laterals"][0].meta["alias"] is None


def test_a_number_without_a_value() -> None:
    """Beyond the largest one of 64 bits: no property can hold it, and JSON cannot tell it."""
    with pytest.raises(RequestError, match="too large") as caught:
        parse("UPDATE STORE k WITH ('a' = 1e999)")
    assert caught.value.faults[0].position is not None
    assert caught.value.faults[0].position.offset == 27
