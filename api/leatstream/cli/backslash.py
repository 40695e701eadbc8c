r"""The prompt's own commands, such as ``\d``: each stands for a statement, or changes the prompt."""

from __future__ import annotations

from dataclasses import dataclass

from leatstream.model.names import quote, split


@dataclass(frozen=True, slots=True)
class Command:
    r"""One command.

    Attributes:
        word: with its backslash.
        about: what it does, for the help.
        sql: the statement it stands for; None = the prompt does it itself.
        of_one: the statement for a name behind the word, with {} for it; None = it takes no name.
        aliases: other words for it.
    """

    word: str
    about: str
    sql: str | None = None
    of_one: str | None = None
    aliases: tuple[str, ...] = ()


COMMANDS = (
    Command("\\d", "relations; \\d NAME describes one", "LIST RELATIONS;", "DESCRIBE RELATION {};"),
    Command("\\dt", "tables", "LIST TABLES;"),
    Command("\\dv", "materialized views", "LIST MATERIALIZED VIEWS;"),
    Command("\\dn", "schemas", "LIST SCHEMAS;", "LIST SCHEMAS IN DATABASE {};"),
    Command("\\ds", "stores; \\ds NAME describes one", "LIST STORES;", "DESCRIBE STORE {};", ("\\s",)),
    Command("\\de", "entities (topics) of the store", "LIST ENTITIES;", "LIST ENTITIES IN STORE {};"),
    Command(
        "\\dq", "queries; \\dq NAME describes one", "LIST QUERIES;", "DESCRIBE QUERY {};", ("\\queries",)
    ),
    Command("\\df", "functions", "LIST FUNCTIONS;"),
    Command("\\l", "databases", "LIST DATABASES;", "DESCRIBE DATABASE {};"),
    Command("\\timing", "shows how long statements take, or stops"),
    Command("\\?", "this help", aliases=("\\h", "\\help")),
    Command("\\q", "leaves, as exit, quit and Ctrl-D do", aliases=("\\quit", "\\exit")),
)
_BY_WORD = {word: command for command in COMMANDS for word in (command.word, *command.aliases)}


class UnknownCommand(Exception):
    """There is no such command, or it does not take what stands behind it."""


def help_text() -> str:
    """What the prompt understands."""
    width = max(len(command.word) for command in COMMANDS)
    lines = (f"  {command.word:<{width}}  {command.about}" for command in COMMANDS)
    keys = "Statements end with a semicolon. TAB completes, Ctrl-C drops what was typed, Ctrl-D leaves."
    return "\n".join((keys, *lines))


def read_command(line: str) -> tuple[str, str | None]:
    r"""The command's own word, and the statement that it stands for, if it stands for one.

    Args:
        line: such as ``\d pageviews``.

    Raises:
        UnknownCommand: with what to write instead.
    """
    word, _, rest = line.strip().rstrip(";").partition(" ")
    command, name = _BY_WORD.get(word.rstrip()), rest.strip()
    if command is None:
        raise UnknownCommand(f"There is no command {word}. \\? lists the commands.")
    if not name:
        return command.word, command.sql
    if command.of_one is None:
        raise UnknownCommand(f"{command.word} takes nothing behind it.")
    try:
        written = ".".join(quote(part) for part in split(name))
    except ValueError as error:
        raise UnknownCommand(f"{command.word} takes one name: {error}.") from None
    return command.word, command.of_one.format(written)
