"""The SQL prompt: lines until a semicolon, the context shown, errors with carets, and no end on errors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from rich.text import Text

from leatstream.cli.backslash import UnknownCommand, help_text, read_command
from leatstream.cli.catalog_names import ServerNames
from leatstream.cli.client import Client, ProblemAnswer, Unreachable
from leatstream.cli.output import Output, printable, stderr
from leatstream.cli.problems import render
from leatstream.cli.selecting import Ended
from leatstream.cli.splitting import is_blank, is_complete
from leatstream.cli.sql import run

if TYPE_CHECKING:
    from leatstream.cli.sql import Context

_FOR_TAB = 3.0  # seconds
# No statement is one of these words alone, and who types one does not think of a semicolon.
_PLAIN = {"exit": "\\q", "quit": "\\q", "help": "\\?", "?": "\\?"}


class Reader(Protocol):
    """Reads what is typed."""

    def read(self, label: str) -> str:
        """One statement or command; EOFError at the end of input, KeyboardInterrupt for Ctrl-C."""


class Prompt:
    """One sitting. The context lives here, the server keeps no session."""

    def __init__(
        self,
        client: Client,
        names: Context,
        output: Output,
        reader: Reader | None = None,
        *,
        wide: bool = False,
    ) -> None:
        """Prepare.

        Args:
            client: of the server.
            names: the context to begin with.
            output: form of results.
            reader: None = the terminal.
            wide: whether lists may be wider than the terminal.
        """
        self._client = client
        self._offered = ServerNames(Client(client.connection, timeout=_FOR_TAB), lambda: self._names)
        self._reader = reader
        self._names = names
        self._output = output
        self._wide = wide
        self._timing = False

    def run(self) -> None:
        """Read and run until the end of input."""
        reader = self._reader or self._editor()
        stderr().print(Text(f"Connected to {self._client.connection.url}; \\? for help, \\q to leave."))
        while (text := self._read(reader)) is not None:
            if text.startswith("\\"):
                if self._command(text):
                    return
            elif not is_blank(text):
                self._execute(text)

    def _editor(self) -> Reader:
        from leatstream.cli.editor import Editor
        from leatstream.cli.history import StatementHistory, history_file

        history = StatementHistory(history_file())
        if history.fault:
            stderr().print(Text(f"{history.fault}."), style="dim")
        return Editor(is_finished, self._offered, history)

    def label(self) -> str:
        """What stands before the cursor: ``demo.public(kafka_store)>``."""
        place = ".".join(
            printable(part) for part in (self._names.get("database"), self._names.get("schema")) if part
        )
        store = self._names.get("store")
        return f"{place or 'leat'}{f'({printable(store)})' if store else ''}> "

    def _read(self, reader: Reader) -> str | None:
        """A whole statement, or a line with a backslash; None at the end of input."""
        while True:
            try:
                text = reader.read(self.label())
            except EOFError:
                stderr().print()
                return None
            except KeyboardInterrupt:  # drops what was typed, as shells do
                continue
            return _PLAIN.get(_bare(text), text)

    def _command(self, line: str) -> bool:
        """Do what a command asks for; whether it is to leave."""
        try:
            word, sql = read_command(line)
        except UnknownCommand as error:
            stderr().print(Text(str(error)))
            return False
        if sql is not None:
            self._execute(sql)
        elif word == "\\timing":
            self._timing = not self._timing
            stderr().print(f"Timing is {'on' if self._timing else 'off'}.")
        elif word == "\\?":
            stderr().print(Text(help_text()))
        return word == "\\q"

    def _execute(self, text: str) -> None:
        started = time.perf_counter()
        try:
            self._names = run(self._client, text, self._names, self._output, wide=self._wide)
        except ProblemAnswer as failure:
            stderr().print(render(failure.problem, text))
        except Unreachable as failure:
            stderr().print(Text(str(failure), "bold red"))
        except Ended:  # of the SELECT only
            pass
        except KeyboardInterrupt:
            stderr().print("Cancelled here; a statement that the server had begun may still finish.")
        self._offered.forget()
        if self._timing:
            stderr().print(f"{(time.perf_counter() - started) * 1000:.0f} ms", style="dim")


def _bare(text: str) -> str:
    return text.strip("; \t\n").lower()


def is_finished(text: str) -> bool:
    """Whether Enter runs what was typed, and does not begin its next line."""
    command = text.startswith("\\") and "\n" not in text
    return command or is_complete(text) or not text.strip() or _bare(text) in _PLAIN
