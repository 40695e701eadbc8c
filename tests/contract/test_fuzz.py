"""Two thousand malformed texts on the real services: each is answered, none by an unexpected error.

``bench/fuzz.py`` does the same a hundred thousand times and looks at the time.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from fuzz_texts import Fuzz, texts
from scratch import memory_directory

from leatstream.errors import RequestError
from leatstream.services.relations.declarations import columns_of
from leatstream.sql.lexer import MAX_TOKENS
from leatstream.sql.parser import MAX_STATEMENTS, parse
from leatstream.sql.statements import CreateStream

COUNT = 2_000


def test_every_text_is_answered() -> None:
    """With a code, an SQLSTATE, and places inside the text; most codes of the language are met."""
    with memory_directory() as directory:
        fuzz = Fuzz(Path(directory))
        for number, text in enumerate(itertools.islice(texts(seed=7), COUNT)):
            fuzz.check(text, run=number % 20 == 0)
        fuzz.close()
    assert fuzz.failures == []
    met = {
        "ok",
        "sql-syntax",
        "unsupported",
        "unknown-relation",
        "unknown-column",
        "not-found",
        "too-complex",
    }
    assert met <= set(fuzz.outcomes)


def _read(text: str) -> None:
    """Parse, and read the column types, as CREATE STREAM does."""
    for statement in parse(text):
        if isinstance(statement, CreateStream):
            columns_of(statement.columns)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 100_000,
        "SELECT a, " * (MAX_TOKENS // 2),
        "CREATE STREAM s AS SELECT " + "CASE WHEN " * 5_000,
        "CREATE STREAM s AS SELECT a" + " + a" * 10_001 + " FROM s",
        "CREATE STREAM s (a " + "ARRAY<" * 3_000 + "INTEGER" + ">" * 3_000 + ") WITH ('value.format'='json')",
        "LIST STORES;" * (MAX_STATEMENTS + 1),
        "INSERT INTO s VALUES (" + "ARRAY[" * 5_000 + "]" * 5_000 + ")",
    ],
    ids=["parentheses", "tokens", "case", "sum", "types", "statements", "values"],
)
def test_size_has_a_bound_that_is_told(text: str) -> None:
    """By counting words, statements and depth, before anything is tried."""
    with pytest.raises(RequestError) as caught:
        _read(text)
    assert caught.value.code in ("too-complex", "sql-syntax", "type-mismatch")
