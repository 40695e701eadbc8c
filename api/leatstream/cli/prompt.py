"""The SQL prompt: lines until a semicolon, the context shown, errors with carets, and no end on errors."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from rich.text import Text

from leatstream.cli.client import Client, ProblemAnswer, Unreachable
from leatstream.cli.output import Output, printable, stderr
from leatstream.cli.problems import render
from leatstream.cli.selecting import Ended
from leatstream.cli.splitting import is_blank, is_complete
from leatstream.cli.sql import run

if TYPE_CHECKING:
    from leatstream.cli.sql import Context

_HELP = r"""Statements end with a semicolon and may take several lines.
  \l databases   \s stores   \d relations   \queries   \timing on or off   \q, exit or Ctrl-D to leave"""
_SHORT = {
    "\\l": "LIST DATABASES;",
    "\\s": "LIST STORES;",
    "\\d": "LIST RELATIONS;",
    "\\queries": "LIST QUERIES;",
}
# No statement is one of these words alone, and who types one does not think of a semicolon.
_PLAIN = {"exit": "\\q", "quit": "\\q", "help": "\\?"}


class Prompt:
    """One sitting. The context lives here, the server keeps no session."""

    def __init__(self, client: Client, names: Context, output: Output) -> None:
        self._client = client
        self._names = names
        self._output = output
        self._timing = False

    def run(self) -> None:
        """Read and run until the end of input."""
        with contextlib.suppress(ImportError):  # line editing and history where the platform has them
            import readline  # noqa: F401
        stderr().print(Text(f"Connected to {self._client.connection.url}; \\? for help, \\q to leave."))
        while (text := self._read()) is not None:
            if text.startswith("\\"):
                word = text.split()[0].rstrip(";")
                if word in ("\\q", "\\quit", "\\exit"):
                    return
                self._meta(word)
            elif not is_blank(text):
                self._execute(text)

    def label(self) -> str:
        """What stands before the cursor: ``demo.public(kafka_store)>``."""
        place = ".".join(
            printable(part) for part in (self._names.get("database"), self._names.get("schema")) if part
        )
        store = self._names.get("store")
        return f"{place or 'leat'}{f'({printable(store)})' if store else ''}> "

    def _read(self) -> str | None:
        """A whole statement, or a line with a backslash; None at the end of input."""
        lines: list[str] = []
        while True:
            label = self.label()
            try:
                lines.append(input(label if not lines else "-> ".rjust(len(label))))
            except EOFError:
                stderr().print()
                return None
            except KeyboardInterrupt:  # drops what was typed, as shells do
                stderr().print()
                lines.clear()
                continue
            text = "\n".join(lines)
            text = _PLAIN.get(text.strip("; \t").lower(), text)
            if (len(lines) == 1 and text.startswith("\\")) or is_complete(text) or not text.strip():
                return text

    def _meta(self, word: str) -> None:
        if word in _SHORT:
            self._execute(_SHORT[word])
        elif word == "\\timing":
            self._timing = not self._timing
            stderr().print(f"Timing is {'on' if self._timing else 'off'}.")
        else:
            stderr().print(Text(_HELP))

    def _execute(self, text: str) -> None:
        started = time.perf_counter()
        try:
            self._names = run(self._client, text, self._names, self._output)
        except ProblemAnswer as failure:
            stderr().print(render(failure.problem, text))
        except Unreachable as failure:
            stderr().print(Text(str(failure), "bold red"))
        except Ended:  # of the SELECT only
            pass
        except KeyboardInterrupt:
            stderr().print("Cancelled here; a statement that the server had begun may still finish.")
        if self._timing:
            stderr().print(f"{(time.perf_counter() - started) * 1000:.0f} ms", style="dim")
