"""What is said of a reserved word that stands where a name or a value is wanted."""

from __future__ import annotations

import pytest

from leatstream.errors import Fault, RequestError
from leatstream.sql.parser import parse


def fault(text: str) -> Fault:
    with pytest.raises(RequestError) as caught:
        parse(text)
    (found,) = caught.value.faults
    assert caught.value.code == "sql-syntax"
    return found


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("SELECT FROM x", "Expected an expression, found the word FROM."),
        ("SELECT FROM (SELECT a FROM x)", "Expected an expression, found the word FROM."),
        ("SELECT a FROM WHERE a = 1", "Expected a relation, found the word WHERE."),
        ("SELECT a FROM GROUP BY a", "Expected a relation, found the word GROUP."),
        ("SELECT a FROM x JOIN ON y = 1", "Expected a relation, found the word ON."),
        ("SELECT a FROM JOIN y ON a = b", "Expected a relation, found the word JOIN."),
        ("SELECT a FROM x WHERE GROUP BY a", "Expected an expression, found the word GROUP."),
        ("SELECT a FROM x GROUP BY HAVING a > 1", "Expected an expression, found the word HAVING."),
        ("SELECT a FROM x WHERE AND a = 1", "Expected an expression, found the word AND."),
        ("SELECT CASE WHEN THEN 1 END FROM x", "Expected an expression, found the word THEN."),
        ("SELECT a FROM x ORDER BY LIMIT 5", "Expected an expression, found the word LIMIT."),
        ("SELECT a FROM x WHERE UNION ALL SELECT a FROM y", "Expected an expression, found the word UNION."),
    ],
)
def test_a_word_that_opens_a_clause_is_not_to_be_quoted(text: str, detail: str) -> None:
    found = fault(text)
    assert (found.detail, found.hint) == (detail, None)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT a, FROM x", "FROM"),
        ("SELECT a,\n from x", "from"),
        ("SELECT a FROM x, WHERE a = 1", "WHERE"),
        ("SELECT a FROM x, LEFT JOIN y ON x.a = y.a", "LEFT"),
        ("SELECT a FROM x GROUP BY a, HAVING a > 1", "HAVING"),
    ],
)
def test_a_comma_too_many_is_told(text: str, word: str) -> None:
    assert fault(text).hint == f"Remove the comma before {word}."


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT from, to FROM x", "from"),
        ("SELECT a, from FROM x", "from"),
        ("SELECT a, order FROM x", "order"),
        ("SELECT Group AS g FROM x", "group"),
        ("SELECT a FROM x WHERE from = 'a'", "from"),
        ("SELECT max(on) FROM x", "on"),
        ("SELECT a FROM order", "order"),
        ("SELECT a FROM order WHERE a = 1", "order"),
        ("SELECT a AS from FROM x", "from"),
        ("CREATE STREAM x (a INT, from VARCHAR) WITH ('a' = 1)", "from"),
        ("CREATE STREAM order (a INT) WITH ('a' = 1)", "order"),
    ],
)
def test_a_word_that_may_be_meant_as_a_name_is_to_be_quoted(text: str, name: str) -> None:
    assert fault(text).hint == f'To use it as a name, write it in double quotes: "{name}".'
