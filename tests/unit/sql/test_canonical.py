"""Comparison by meaning, and the grammar under random input."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statement_forms import form

from leatstream.errors import RequestError
from leatstream.plan.logical import LogicalPlan
from leatstream.sql.canonical import canonical, statement_hash
from leatstream.sql.parser import parse

SAME = [
    "CREATE STREAM x AS SELECT a FROM t WHERE b = 'It''s'",
    "create  stream X\n as select A from T where B='It''s' ;",
    "/* why */ CREATE STREAM x AS -- because\n SELECT a FROM t WHERE b = 'It''s';;\n",
]
DIFFERENT = [
    "CREATE STREAM x AS SELECT a FROM t WHERE b = 'it''s'",
    "CREATE STREAM x AS SELECT a FROM t WHERE b = 'It''s '",
    "CREATE STREAM x AS SELECT \"A\" FROM t WHERE b = 'It''s'",
    "CREATE STREAM x AS SELECT a FROM t WHERE b <> 'It''s'",
    "CREATE STREAM x AS SELECT a FROM t WHERE b = 'It''s' -",
]
SEEDS = [
    *SAME,
    "SELECT p.userid AS \"U\", u.contact->phone, x[1], m['k'] FROM pageviews p"
    " WITH ('starting.position'='earliest')"
    " LEFT JOIN users u WITHIN (5 MINUTES) ON p.userid = u.userid WHERE NOT a BETWEEN 1 AND 2.5e3",
    "CREATE STREAM s (a BIGINT NOT NULL, b STRUCT<c ARRAY<INT>>) WITH ('topic'='x','topic.partitions'=3);"
    " LIST STORES",
    "WITH a AS (SELECT * FROM t) SELECT CASE WHEN b THEN CAST(c AS DECIMAL(3,1)) ELSE TRIM(BOTH 'x' FROM d)"
    " END FROM a UNION ALL SELECT f(g, -1) || 'é东' FROM (SELECT 1 AS h FROM t) s",
    "CREATE STORE k WITH ('type'=KAFKA,'uris'='a:1'); PRINT TOPIC a.b IN STORE k WITH ('from_beginning')",
]


def test_meaning() -> None:
    assert len({canonical(text) for text in SAME}) == 1
    assert len({statement_hash(text) for text in [*SAME, *DIFFERENT]}) == 1 + len(DIFFERENT)
    assert re.fullmatch("[0-9a-f]{64}", statement_hash("x"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "CREATE STREAM o WITH ('topic' = 't', 'value.format' = json) AS SELECT a FROM s",
            "CREATE STREAM o WITH ('VALUE.FORMAT' = json, 'topic' = 't') AS SELECT a FROM s",
        ),
        ("CREATE TOPIC t IN DATA STORE k", 'create entity "t" in store "k"'),
        ("SHOW NAMESPACES IN DATABASE d", "LIST SCHEMAS IN DATABASE d"),
        ("SELECT CAST(a AS INT) b FROM s WHERE a != 1", "SELECT a::INTEGER AS b FROM s WHERE a <> 1"),
        ("SELECT a FROM TUMBLE(s, SIZE 60 SECONDS)", "SELECT a FROM TUMBLE(s, SIZE 1 MINUTE)"),
    ],
)
def test_spellings_of_one_meaning(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # A bare word may be a text, whose case counts.
        (
            "CREATE STREAM o WITH ('topic' = Orders) AS SELECT a FROM s",
            "CREATE STREAM o WITH ('topic' = orders) AS SELECT a FROM s",
        ),
        ("SELECT a FROM s ORDER BY a", "SELECT a FROM s ORDER BY a NULLS LAST"),
        ("SELECT a, b FROM s", "SELECT b, a FROM s"),
        ("SELECT a FROM s WHERE (a)", "SELECT a FROM s WHERE a"),
        ('SELECT "left" FROM s', 'SELECT "Left" FROM s'),
    ],
)
def test_texts_of_two_meanings(one: str, other: str) -> None:
    assert statement_hash(one) != statement_hash(other)


def test_never_raises() -> None:
    assert canonical("  SELECT 'open ") == "SELECT 'open"
    assert canonical("") == canonical(" ; -- x") == ""
    assert statement_hash("\ud800")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A statement with pieces cut, doubled, swapped or replaced."""
    text = draw(st.sampled_from(SEEDS))
    pieces = re.findall(r"\s+|\w+|.", text, re.DOTALL)
    junk = st.sampled_from(
        [*"()[],;.'\"`<>=+-*/%:|&~^@#$\\\n\t\0", "--", "/*", "*/", "->", "'\\'", "𝒳", "SELECT", "NOT"]
    )
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(pieces) - 1))
        action = draw(st.integers(0, 3))
        if action == 0:
            del pieces[at : at + draw(st.integers(1, 4))]
        elif action == 1:
            pieces[at:at] = pieces[at : at + 5]
        elif action == 2:
            pieces[at] = draw(junk)
        else:
            pieces.insert(at, draw(st.text(max_size=5)))
        if not pieces:
            break
    return "".join(pieces)


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_canonical_is_idempotent(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once


@settings(max_examples=600, deadline=None)
@given(mutated())
def test_parse_raises_request_errors_only(text: str) -> None:
    try:
        statements = parse(text)
    except RequestError as error:
        for fault in error.faults:
            assert fault.position is not None
            assert 0 <= fault.position.offset <= len(text)
            assert fault.position.offset + fault.position.length <= len(text)
        return
    # What means the same reads the same.
    assert form(parse(canonical(text))) == form(statements)


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_bind_raises_request_errors_only(bind_text: Callable[[str], LogicalPlan], text: str) -> None:
    for statement in _statements(text):
        if hasattr(statement, "select"):
            with contextlib.suppress(RequestError):
                bind_text(statement.text)


def _statements(text: str) -> list:  # type: ignore[type-arg]
    try:
        return parse(text)
    except RequestError:
        return []


SPARK_STRING = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)


def spark_reads(literal: str) -> str:
    """What Spark's unescaping makes of a literal that uses \\uXXXX only."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m.group(1), 16)), literal[1:-1])


@settings(max_examples=500, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text("'\\\"`$u{}0;-/*", max_size=30)
)
def test_strings_cannot_break_out(bind_text: Callable[[str], LogicalPlan], value: str) -> None:
    quoted = "'" + value.replace("'", "''") + "'"
    sql = bind_text(f"SELECT {quoted} AS a FROM pageviews").sql
    match = SPARK_STRING.match(sql, len("SELECT "))
    assert match is not None
    assert sql[match.end() :].startswith(" AS `a`, ")
    assert spark_reads(match.group()) == value
    assert "${" not in sql


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_names_cannot_break_out(bind_text: Callable[[str], LogicalPlan], name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    try:
        sql = bind_text(f"SELECT userid AS {quoted} FROM pageviews").sql
    except RequestError:
        assert "${" in name or name.lower().startswith("__leat_")
        return
    assert sql.startswith(f"SELECT `t0`.`userid` AS `{name.replace('`', '``')}`, ")


@pytest.mark.parametrize("name", ["${env:HOME}", "a\nb", ""])
def test_names_that_spark_would_fill_in(bind_text: Callable[[str], LogicalPlan], name: str) -> None:
    with pytest.raises(RequestError) as caught:
        bind_text(f'SELECT userid AS "{name}" FROM pageviews')
    assert caught.value.code == "sql-syntax"
