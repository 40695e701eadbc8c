"""Files that a text names with ``'file' = '@path'``: read here and sent along."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import typer

_NAMED = re.compile(r"'file'\s*=\s*'@((?:[^']|'')+)'", re.IGNORECASE)


def attachments(text: str) -> dict[str, str]:
    """Name, as written after the @, to content in base64, of each file that the text names.

    Raises:
        typer.BadParameter: one cannot be read.
    """
    found: dict[str, str] = {}
    for match in _NAMED.finditer(text):
        name = match[1].replace("''", "'")
        try:
            found[name] = base64.b64encode(Path(name).expanduser().read_bytes()).decode()
        except OSError as error:
            raise typer.BadParameter(f"the file {name} cannot be read: {error.strerror}") from error
    return found
