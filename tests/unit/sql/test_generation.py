"""Statements written from their parsed form: ``parse(generate(parse(x)))`` gives what ``parse(x)`` gives."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from query_strategies import queries
from statement_forms import form
from statement_strategies import STATEMENTS

from leatstream.errors import RequestError
from leatstream.sql import access_statements as access
from leatstream.sql import statements as s
from leatstream.sql.generation.statements import WRITERS, generate
from leatstream.sql.generation.words import called, name
from leatstream.sql.parser import parse
from leatstream.sql.reserved_words import NO_ALIAS

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)


def texts_of(path: Path) -> list[str]:
    """Every text that a fixture or page has."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return BLOCK.findall(text)
    if path.suffix == ".json":
        return list(_strings(json.loads(text)))
    if path.parent.name in ("sql", "statements"):
        cases = [block.partition("\n")[2] for block in text.strip().split("\n\n")]
        return [re.split(r"\n=>", case)[0] for case in cases]
    return [text]


def _strings(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for key, value in found.items():
            if key in ("sql", "before", "after") and isinstance(value, str):
                yield value
            else:
                yield from _strings(value)
    elif isinstance(found, list):
        for value in found:
            yield from _strings(value)


SOURCES = [
    *FIXTURES.glob("statements/*.sql"),
    *FIXTURES.glob("sql/*.sql"),
    *(path for folder in ("queries", "views", "changes") for path in FIXTURES.glob(f"{folder}/**/*.json")),
    *ROOT.glob("docs/**/*.md"),
    ROOT / "README.md",
    *FIXTURES.glob("docs/**/*.sql"),
]


def read(text: str) -> list[s.Statement]:
    """The statements of a text; none of one that is refused."""
    try:
        return parse(text)
    except RequestError:
        return []


@functools.cache
def statements_read() -> Sequence[s.Statement]:
    """All of the fixtures and the documentation, each once."""
    found = {one.text: one for path in sorted(SOURCES) for text in texts_of(path) for one in read(text)}
    return tuple(found.values())


def check(statement: s.Statement) -> None:
    """Written and read again it says the same, and is written the same."""
    text = generate(statement)
    (again,) = parse(text)
    assert form(again) == form(statement), text
    assert generate(again) == text


@pytest.mark.parametrize("kind", sorted(WRITERS, key=lambda kind: kind.__name__))
def test_what_the_fixtures_and_the_documentation_say(kind: type[s.Statement]) -> None:
    found = [one for one in statements_read() if type(one) is kind]
    if kind is s.CreateVirtual:
        applications = [one for one in statements_read() if isinstance(one, s.CreateApplication)]
        assert any(isinstance(one, kind) for each in applications for one in each.statements)
        return
    assert found
    for statement in found:
        check(statement)


def test_there_is_much_to_say() -> None:
    assert len(statements_read()) > 800


def test_every_statement_can_be_written() -> None:
    """And random ones of every class are tried."""
    every = [*vars(s).values(), *vars(access).values()]
    kinds = {kind for kind in every if isinstance(kind, type) and issubclass(kind, s.Statement)}
    assert set(WRITERS) == kinds - {s.Statement, s.CreateRegistered, s.CreateAs}
    assert set(STATEMENTS) == set(WRITERS)


@pytest.mark.parametrize("kind", sorted(STATEMENTS, key=lambda kind: kind.__name__))
def test_random_statements(kind: type[s.Statement]) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STATEMENTS[kind])
    def write(statement: s.Statement) -> None:
        check(statement)

    write()


@pytest.mark.parametrize("shape", ["a {} b {} c", "(a {} b) {} c", "a {} (b {} c)"])
def test_operators_between_queries_take_what_they_took(shape: str) -> None:
    operators = ("UNION", "UNION ALL", "EXCEPT", "MINUS", "INTERSECT", "INTERSECT ALL")
    for pair in itertools.product(operators, repeat=2):
        text = re.sub(r"\b([abc])\b", r"SELECT * FROM \1", shape.format(*pair))
        check(*parse(text))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(queries(2))
def test_random_queries(text: str) -> None:
    """They are spelt as the generator does, so what parsing or writing loses is seen."""
    for statement in read(text):
        assert generate(statement) == text
        check(statement)


@pytest.mark.parametrize(
    "text",
    [
        # What is read away or told by a place alone.
        "SELECT a FROM s UNION SELECT a FROM t UNION ALL SELECT a FROM u",
        "(SELECT a FROM s UNION SELECT a FROM t) UNION ALL SELECT a FROM u",
        "SELECT a FROM s EXCEPT SELECT a FROM t UNION ALL (SELECT a FROM u INTERSECT ALL SELECT a FROM v)",
        "(SELECT a FROM s ORDER BY a LIMIT 3) ORDER BY b LIMIT 2",
        "((SELECT a FROM s LIMIT 3) LIMIT 2) OFFSET 1",
        "WITH w AS (SELECT a FROM s) (WITH w AS (SELECT a FROM w) SELECT a FROM w)",
        # A sub-query that does not fill the parentheses it begins.
        "SELECT (+(SELECT a FROM s) + 1), b IN (+(SELECT a FROM t), 2), (+(SELECT a FROM u)) FROM v",
        # Signs beside each other.
        "SELECT - - a, a - - 1, ~ - a, NOT NOT a IS NOT NULL, - a::BIGINT FROM s",
        "SELECT a::BIGINT < 3, CAST(a + 1 AS ARRAY<BIGINT>)[1] > 3, a::VARCHAR(3)::BYTES FROM s",
        "SELECT a FROM s CROSS JOIN UNNEST(b) WHERE (a) IS NULL",
        "SELECT a FROM s GROUP BY GROUPING SETS ((), ()), a, ROLLUP ((b), (c, d)), e",
        "SELECT a FROM s MATCH_RECOGNIZE (PATTERN (PERMUTE(a)* (b | () | ^)+? {- $ (c d){2} -} e) DEFINE a AS b)",
        "SELECT a FROM s MATCH_RECOGNIZE (ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a | b) DEFINE a AS b)",
    ],
)
def test_what_is_easily_lost(text: str) -> None:
    (statement,) = parse(text)
    assert generate(statement) == text
    check(statement)


def test_chains_take_no_depth() -> None:
    """However long they are, within what the grammar takes."""
    column, steps = "a" + " + 1" * 999, "a" + "->b[1]::DATE" * 1000
    text = f"SELECT {column}, {steps} FROM s" + " UNION ALL SELECT a, b FROM t" * 1000
    (statement,) = parse(text)
    assert generate(statement) == text


@pytest.mark.parametrize(
    "number", ["1e99", "12345678901234567.8", ".000123456789012345", "-1.5e-300", "1e-320"]
)
def test_numbers_of_properties(number: str) -> None:
    """A number has at most 19 characters, and Python may write it with more."""
    (statement,) = parse(f"UPDATE STORE k WITH ('a' = {number})")
    check(statement)


# Each word of the grammar stands for %s. Words are written large and names small, so none is taken for the other.
NAMED = (
    "SELECT %s.%s, %s->%s, %s[1], count(%s) AS %s FROM %s AS %s WITH ('timestamp' = 'x') LEFT JOIN %s WITHIN 1 DAY"
    " ON %s = - %s CROSS JOIN UNNEST(%s) AS %s (%s) WHERE NOT %s AND %s IN (%s) GROUP BY %s HAVING %s IS NULL",
    "WITH %s AS (SELECT %s FROM %s) SELECT %s, CASE %s WHEN %s THEN %s ELSE %s END FROM TUMBLE(%s, SIZE 1 DAY)"
    " ORDER BY %s, %s DESC LIMIT 3",
    "SELECT json_object(%s VALUE %s), trim(%s), trim(BOTH %s FROM %s), position(%s, %s), ceil(%s), %s LIKE %s FROM %s",
    "SELECT * FROM %s MATCH_RECOGNIZE (PARTITION BY %s ORDER BY %s MEASURES %s.%s AS %s AFTER MATCH SKIP TO LAST %s"
    " PATTERN (%s %s+ | PERMUTE(%s, b)) SUBSET %s = (%s) DEFINE %s AS %s) AS %s",
    "CREATE STREAM %s (%s BIGINT, %s VARCHAR) COMMENT 'c'",
    "CREATE CHANGELOG %s.%s.%s (%s BIGINT, PRIMARY KEY (%s)) WITH ('a' = 1)",
    "CREATE TABLE %s COMMENT 'c' AS SELECT %s FROM %s QUERY WITH ('query.name' = 'q')",
    "CREATE SCHEMA %s IN DATABASE %s COMMENT 'c'",
    "CREATE ENTITY %s IN STORE %s",
    "CREATE INDEX %s ON %s (%s)",
    "CREATE FUNCTION %s(%s BIGINT) RETURNS BIGINT LANGUAGE JAVA WITH ('a' = 1)",
    "INSERT INTO %s SELECT %s FROM %s",
    "INSERT INTO %s (%s) VALUES (1)",
    "INSERT INTO %s VALUES (1)",
    "INSERT INTO ENTITY %s VALUE('1')",
    "DESCRIBE RELATION %s",
    "DESCRIBE QUERY %s",
    "DROP ENTITY %s IN STORE %s",
    "DROP FUNCTION %s(BIGINT)",
    "LIST STREAMS IN DATABASE %s",
    "PRINT ENTITY %s",
    "TERMINATE QUERY %s WITH SAVEPOINT %s",
    "RESTART QUERY %s FROM EARLIEST",
    "USE SCHEMA %s",
    "BEGIN APPLICATION %s CREATE VIRTUAL STREAM virtual.%s.%s AS SELECT %s FROM %s; END APPLICATION",
)
MODULES = [path.read_text(encoding="utf-8") for path in (ROOT / "api/leatstream/sql").glob("*.py")]
READERS = "".join(module for module in MODULES if "self.take(" in module)
GRAMMAR = sorted(NO_ALIAS | set(re.findall(r'"([a-z_]+)"', READERS)))
# Their arguments are read in a way of their own.
OWN_FORMS = {"extract", "json_object", "overlay", "position", "timestampadd", "timestampdiff"}


def test_names_that_are_words_of_the_grammar() -> None:
    """In quotes only where they have to be, and read back as names."""
    assert {"tumble", "recursive", "leading", "primary", "entity"} <= set(GRAMMAR)
    bare = [word for word in GRAMMAR if name(word) == word]
    assert len(bare) > 100
    for word in bare:
        texts = [text.replace("%s", word) for text in NAMED]
        texts += (
            [f"SELECT {called(word)}(1) FROM s GROUP BY {called(word)}(a)"] if word not in OWN_FORMS else []
        )
        statements = parse(";".join(texts))
        assert [generate(statement) for statement in statements] == texts
