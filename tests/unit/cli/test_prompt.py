"""The prompt of ``leat sql``, by the keys that are pressed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput

from leatstream.cli.backslash import COMMANDS
from leatstream.cli.completion import Relation
from leatstream.cli.editor import Editor
from leatstream.cli.output import Output
from leatstream.cli.prompt import Prompt, is_finished

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Service

Typed = Callable[..., list[str]]
CONTEXT = {"database": None, "schema": None, "store": None, "role": None}
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"


class OneStream:
    def of(self, noun: str) -> list[str]:
        return ["play"] if noun == "database" else []

    def relations(self) -> list[Relation]:
        return [Relation("pageviews", "stream", ("userid",))]


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


@pytest.fixture
def history() -> History:
    return InMemoryHistory()


@pytest.fixture
def pressed(service: Service, keys: PipeInput, history: History) -> Typed:
    """Presses keys, then Ctrl-D on an empty line; gives the SQL that was sent."""
    service.answer("POST", "/v1/statements", {"results": [], "context": CONTEXT})

    def run(text: str) -> list[str]:
        keys.send_text(text + CTRL_C + CTRL_D)
        reader = Editor(is_finished, OneStream(), history, source=keys, screen=DummyOutput())
        Prompt(service.client(), {"database": None}, Output.TABLE, reader).run()
        return [json.loads(request.content)["sql"] for request in service.requests]

    return run


@pytest.fixture
def typed(pressed: Typed) -> Typed:
    """Types lines, with Enter behind each."""
    return lambda *lines: pressed("".join(f"{line}\r" for line in lines))


@pytest.mark.parametrize(
    "word", ["exit", "quit", "exit;", "QUIT ;", " Exit ", "\\q", "\\q;", "\\quit", "\\exit"]
)
def test_words_that_leave(typed: Typed, word: str) -> None:
    assert typed("LIST STORES;", word, "LIST DATABASES;") == ["LIST STORES;"]


@pytest.mark.parametrize("word", ["help", "HELP;", "\\?", "?", "\\help"])
def test_words_that_show_help(typed: Typed, capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert typed(word, "LIST STORES;") == ["LIST STORES;"]
    told = capsys.readouterr().err
    assert [command.word for command in COMMANDS if command.word not in told] == []


@pytest.mark.parametrize("word", ["exit", "quit;", "help"])
def test_such_a_word_in_a_statement_is_part_of_it(typed: Typed, word: str) -> None:
    text = f"SELECT a AS\n{word.rstrip(';')};"
    assert typed(*text.split("\n"), "SELECT exit FROM s;") == [text, "SELECT exit FROM s;"]


@pytest.mark.parametrize(
    ("meta", "sql"),
    [
        ("\\l", "LIST DATABASES;"),
        ("\\s", "LIST STORES;"),
        ("\\ds", "LIST STORES;"),
        ("\\ds kafka_store", "DESCRIBE STORE kafka_store;"),
        ("\\d", "LIST RELATIONS;"),
        ("\\d;", "LIST RELATIONS;"),
        ("\\d Demo.public.PageViews", "DESCRIBE RELATION demo.public.pageviews;"),
        ('\\d "Page views";', 'DESCRIBE RELATION "Page views";'),
        ("\\dt", "LIST TABLES;"),
        ("\\dq", "LIST QUERIES;"),
        ("\\queries", "LIST QUERIES;"),
        ("\\dq q", "DESCRIBE QUERY q;"),
    ],
)
def test_commands_stand_for_statements(typed: Typed, meta: str, sql: str) -> None:
    assert typed(meta) == [sql]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("\\what", "There is no command \\what."),
        ("\\dt x", "\\dt takes nothing behind it."),
        ("\\d a b", "\\d takes one name"),
    ],
)
def test_a_command_that_does_not_exist_does_nothing(
    typed: Typed, capsys: pytest.CaptureFixture[str], line: str, told: str
) -> None:
    assert typed(line) == []
    assert told in capsys.readouterr().err


def test_each_command_is_a_statement_that_can_be_read() -> None:
    from leatstream.sql.parser import parse

    for command in COMMANDS:
        for text in (command.sql, command.of_one and command.of_one.format("x")):
            assert text is None or len(parse(text)) == 1


def test_ctrl_c_drops_what_was_typed(pressed: Typed) -> None:
    assert pressed(f"SELECT nonsense\rFROM{CTRL_C}LIST STORES;\r") == ["LIST STORES;"]


def test_a_statement_of_several_lines_is_remembered_as_one(pressed: Typed, history: History) -> None:
    pressed("LIST\rSTORES;\r\\l\r")
    assert history.get_strings() == ["LIST\nSTORES;", "\\l"]


def test_enter_behind_an_error_goes_on(service: Service, typed: Typed) -> None:
    problem = {"code": "sql-syntax", "detail": "No.", "status": 400}
    service.answer("POST", "/v1/statements", problem, status=400)
    assert typed("LIST STORES;", "LIST STORE;", "LIST STORES;")[-1] == "LIST STORES;"


@pytest.mark.parametrize(
    ("keys_pressed", "sql"),
    [
        (f"DRO{TAB}", "DROP"),
        (f"USE DATABASE {TAB}", "USE DATABASE play"),
        (f"SELECT 1 FROM page{TAB}", "SELECT 1 FROM pageviews"),
        (f"SELECT pageviews.{TAB}", "SELECT pageviews.userid"),
    ],
)
def test_tab_completes(keys: PipeInput, keys_pressed: str, sql: str) -> None:
    """A thread looks for candidates: Enter has to wait until it has found the only one."""
    editor = Editor(lambda _: True, OneStream(), InMemoryHistory(), source=keys, screen=DummyOutput())

    def enter(buffer: Buffer) -> None:
        if buffer.text == sql:
            keys.send_text("\r\r")  # the first one may take it from a menu

    editor._session.default_buffer.on_text_changed += enter
    keys.send_text(keys_pressed)
    assert editor.read("> ") == sql


def test_the_cli_keeps_its_history_where_state_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from leatstream.cli.history import history_file

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "leatstream" / "sql_history"
