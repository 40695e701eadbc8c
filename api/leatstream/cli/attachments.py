"""Files that statements name with ``'file' = '@path'``: read here and sent along."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer

_MAYBE = re.compile(r"'file'\s*=\s*'@", re.IGNORECASE)  # such a text is parsed; others need no parser
_MOST_BYTES = 1024 * 1024  # of a request


def attachments(
    text: str, folder: Path | None = None, allowed: Sequence[Path] = (), origin: str = "the script"
) -> dict[str, str]:
    """Name, as written after the @, to content in base64, of each file that the statements name.

    Comments and texts name none. The service says what is wrong with a text that cannot be parsed.

    Args:
        text: the statements.
        folder: of the script that they come from; None = a person has typed them and may name any file.
        allowed: more folders whose files a script may name.
        origin: what the statements come from, for messages.

    Raises:
        typer.BadParameter: a file cannot be read, or a script may not name it.
    """
    found: dict[str, str] = {}
    for name in _named(text):
        path = _place(name, folder)
        if folder is not None and not _is_within(path, (folder, *allowed)):
            raise typer.BadParameter(
                f"{origin} names the file {name}, which is not beside or below it, so it is not sent. "
                f"If you want that, add: --allow-files {path.resolve().parent}"
            )
        try:
            with path.open("rb") as stream:
                content = stream.read(_MOST_BYTES + 1)
        except OSError as error:
            raise typer.BadParameter(f"the file {name} cannot be read: {error.strerror}") from error
        if len(content) > _MOST_BYTES:
            raise typer.BadParameter(f"the file {name} has more than 1 MiB, the most that is sent")
        found[name] = base64.b64encode(content).decode()
    return found


def _named(text: str) -> list[str]:
    if not _MAYBE.search(text):
        return []
    from leatstream.errors import RequestError
    from leatstream.sql.parser import parse
    from leatstream.sql.statements import CreateDescriptorSource, CreateFunctionSource

    try:
        statements = parse(text)
    except RequestError:
        return []
    takers = (one for one in statements if isinstance(one, CreateFunctionSource | CreateDescriptorSource))
    given = (one.properties["file"].value for one in takers if "file" in one.properties)
    return [str(name)[1:] for name in dict.fromkeys(given) if str(name).startswith("@")]


def _place(name: str, folder: Path | None) -> Path:
    """A relative name is looked up beside the script, then in the current directory."""
    path = Path(name).expanduser()
    return folder / path if folder is not None and (folder / path).exists() else path


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a file lies in or below one of them, wherever links lead."""
    real = path.resolve()
    return any(real.is_relative_to(folder.expanduser().resolve()) for folder in folders)
