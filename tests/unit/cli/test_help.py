"""What ``--help`` and TAB say about each command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from leatstream.cli import shell_names
from leatstream.cli.app import first_word, program
from leatstream.cli.client import Client
from leatstream.cli.connection import Connection
from leatstream.cli.examples import EXAMPLES

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]

ROOT: Any = program()


def commands(group: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def test_every_command_has_examples_and_no_other_has() -> None:
    assert sorted(EXAMPLES) == sorted(name for name, _ in commands())


def test_every_example_is_of_its_command_and_can_be_read() -> None:
    """Read with all of its options and arguments, and not run."""
    for name, command in commands():
        for example in EXAMPLES[name]:
            words, count = shlex.split(example.split(" < ")[0]), len(name.split())
            assert " ".join(words[:count]) == name
            command.make_context(name, words[count:], parent=ROOT.make_context("leat", list(words)))


@pytest.mark.parametrize("name", ROOT.commands)
def test_a_word_has_only_its_own_commands_built(name: str) -> None:
    """And they are those of the whole program."""
    part = program(name)
    assert list(part.commands) == [name]
    (one, whole) = (part.commands[name], ROOT.commands[name])
    assert list(getattr(one, "commands", ())) == list(getattr(whole, "commands", ()))
    assert [option.opts for option in one.params] == [option.opts for option in whole.params]
    assert [option.opts for option in part.params] == [option.opts for option in ROOT.params]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("store list --url x", "store"),
        ("--url http://h sql -e x", "sql"),
        ("--url=http://h open", "open"),
        ("--help", None),
        ("--version store", None),
        ("stor list", None),
        ("--url store", None),
        ("", None),
    ],
)
def test_the_first_word_stands_behind_the_server(line: str, word: str | None) -> None:
    assert first_word(line.split()) == word


def test_a_word_that_is_none_is_compared_with_all(leat: Leat) -> None:
    refused = leat("stroe", "list")
    assert refused.status == 2
    assert "store" in refused.err


def test_help_shows_the_examples(leat: Leat) -> None:
    out = leat("query", "restart", "--help").out
    assert "leat query restart enriched --skip-record pageviews:3:42" in out
    assert "Examples:" in out


@pytest.fixture
def tab(service: Service, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What TAB offers behind the words; the last one is being typed."""
    monkeypatch.setenv("LEATSTREAM_URL", "http://service.test")
    monkeypatch.setattr("leatstream.cli.client.Client", lambda *_args, **_options: service.client())

    def press(*words: str) -> list[str]:
        context = ROOT.make_context("leat", list(words[:-1]), resilient_parsing=True)
        command = ROOT
        for word in words[:-1]:
            command = command.commands[word]
            context = command.make_context(word, [], parent=context, resilient_parsing=True)
        argument = next(one for one in command.params if one.param_type_name == "argument")
        return [item.value for item in argument.shell_complete(context, words[-1])]

    return press


def test_tab_offers_names(service: Service, tab: Callable[..., list[str]]) -> None:
    queries = [{"name": "enriched"}, {"name": "Eins"}, {"name": "other"}]
    service.answer("GET", "/v1/queries", {"items": queries})
    service.answer("GET", "/v1/stores", {"items": [{"name": "kafka"}]})
    service.answer("GET", "/v1/stores/kafka/entities", {"items": [{"name": "a.b"}]})
    service.answer("GET", "/v1/relations", {"items": [{"fqn": "demo.public.s", "name": "s"}]})
    assert tab("query", "logs", "") == ["enriched", '"Eins"', "other"]
    assert tab("query", "restart", "e") == ["enriched"]
    assert tab("relation", "get", "de") == ["demo.public.s"]
    assert tab("entity", "list", "") == ["kafka"]
    assert tab("print", "ka") == ["kafka/"]
    assert tab("entity", "get", "kafka/a") == ["kafka/a.b"]


def test_tab_is_silent_without_a_server(
    tab: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tab("query", "get", "") == []
    monkeypatch.setenv("LEATSTREAM_URL", "no URL")
    assert tab("query", "get", "") == []


def test_tab_gives_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(Connection("http://service.test", None, "a test"), timeout=shell_names._SECONDS)
    assert client._retry_for <= 3.0


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("status", "leat query top --once"),
        ("version", "leat --version"),
        ("queries", "leat query list"),
        ("stores", "leat store list"),
        ("restart", "leat query restart or leat application restart"),
        ("query describe q", "leat query get"),
        ("query drop q", "leat query delete"),
        ("store tail", None),
        ("store create ch", "leat store apply"),
        ("secret update token", "leat secret apply"),
        ("nonsense", None),
    ],
)
def test_an_unknown_command_names_the_one_that_is_meant(leat: Leat, words: str, meant: str | None) -> None:
    done = leat(*words.split())
    text = " ".join(done.err.replace("│", " ").split())
    assert done.status == 2
    assert "No such command" in text
    assert ("Try: " in text.partition("No such command")[2]) == (meant is not None)
    assert meant is None or f"Try: {meant}" in text
