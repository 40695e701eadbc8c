"""What was typed at the prompt, kept for the next sitting in a file that only its owner may read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

import platformdirs
from prompt_toolkit.history import History

from leatstream.cli.own_files import open_own

_MOST_BYTES = 1024 * 1024
# Wider than what the server conceals: a statement too much is forgotten, a secret never kept.
_SECRET = re.compile(r"secret|passw|passphrase|pwd|token|credential|private|jaas|key_file|://[^\s/]*@", re.I)


def history_file() -> Path:
    """Where the statements of the prompt are kept."""
    return Path(platformdirs.user_state_dir("leatstream", appauthor=False)) / "sql_history"


def may_be_kept(text: str) -> bool:
    """Whether a statement holds nothing that looks like a password or a secret."""
    return bool(text.strip()) and not _SECRET.search(text)


class StatementHistory(History):
    """One statement a line, as JSON, the newest last.

    Attributes:
        fault: why nothing is kept; None while it is.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.fault: str | None = None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._trim()
        except OSError as error:
            self.fault = f"{path} cannot be used, so no history is kept: {error.strerror or error}"

    def load_history_strings(self) -> Iterable[str]:
        """The statements, newest first."""
        return [] if self.fault else reversed(self._read())

    def store_string(self, string: str) -> None:
        """Keep one statement, if it may be kept."""
        if self.fault or not may_be_kept(string):
            return
        try:
            descriptor = open_own(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(json.dumps(string, ensure_ascii=False) + "\n")
        except OSError as error:
            self.fault = str(error)

    def _read(self) -> list[str]:
        try:
            with os.fdopen(open_own(self._path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return []
        found: list[str] = []
        for line in lines:
            try:
                text = json.loads(line)
            except ValueError:  # cut off by a crash
                continue
            found += [text] if isinstance(text, str) else []
        return found

    def _trim(self) -> None:
        """Drop the older half of a file that has grown too large; OSError for one that is not usable."""
        statements = self._read()
        if not statements or self._path.stat().st_size <= _MOST_BYTES:
            return
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        descriptor = open_own(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            kept = statements[len(statements) // 2 :]
            file.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in kept)
        fresh.replace(self._path)
