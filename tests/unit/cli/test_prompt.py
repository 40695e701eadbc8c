"""The prompt of ``leat sql``: what its lines mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from leatstream.cli.output import Output
from leatstream.cli.prompt import Prompt

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Service

Typed = Callable[..., list[str]]
CONTEXT = {"database": None, "schema": None, "store": None, "role": None}


@pytest.fixture
def typed(service: Service, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Types lines, then Ctrl-D; gives the SQL that was sent."""
    service.answer("POST", "/v1/statements", {"results": [], "context": CONTEXT})

    def run(*lines: str) -> list[str]:
        left = list(lines)

        def read(_label: str) -> str:
            if not left:
                raise EOFError
            return left.pop(0)

        monkeypatch.setattr("builtins.input", read)
        Prompt(service.client(), {"database": None}, Output.TABLE).run()
        return [json.loads(request.content)["sql"] for request in service.requests]

    return run


@pytest.mark.parametrize(
    "word", ["exit", "quit", "exit;", "QUIT ;", " Exit ", "\\q", "\\q;", "\\quit", "\\exit"]
)
def test_words_that_leave(typed: Typed, word: str) -> None:
    assert typed("LIST STORES;", word, "LIST DATABASES;") == ["LIST STORES;"]


@pytest.mark.parametrize("word", ["help", "HELP;", "\\?", "\\what"])
def test_words_that_show_help(typed: Typed, capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert typed(word, "LIST STORES;") == ["LIST STORES;"]
    told = capsys.readouterr().err
    for meta in ("\\queries", "\\q", "\\timing", "exit"):
        assert meta in told


@pytest.mark.parametrize("word", ["exit", "quit;", "help"])
def test_such_a_word_in_a_statement_is_part_of_it(typed: Typed, word: str) -> None:
    text = f"SELECT a AS\n{word.rstrip(';')};"
    assert typed(*text.split("\n")) == [text]
    assert typed("SELECT exit FROM s;")[-1] == "SELECT exit FROM s;"


@pytest.mark.parametrize(
    ("meta", "sql"),
    [
        ("\\l", "LIST DATABASES;"),
        ("\\s", "LIST STORES;"),
        ("\\d", "LIST RELATIONS;"),
        ("\\queries", "LIST QUERIES;"),
        ("\\d;", "LIST RELATIONS;"),
    ],
)
def test_short_forms(typed: Typed, meta: str, sql: str) -> None:
    assert typed(meta) == [sql]
