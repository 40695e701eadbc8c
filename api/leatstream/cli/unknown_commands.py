"""What to say of a command that does not exist: the one that people mean by that word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# Words of other programs to ours; {group} is the group that the word was typed in, such as `leat query`.
_OF_THE_PROGRAM = {
    "help": "leat --help",
    "version": "leat --version",
    "status": "leat query top --once",
    "ps": "leat query top --once",
    "top": "leat query top",
    "why": "leat query get QUERY",
    "apply": "leat sql -f FILE",
    "run": "leat sql -f FILE",
    "plan": "leat sql -f FILE --dry-run",
    "validate": "leat sql -f FILE --dry-run",
    "shell": "leat sql",
    "health": "leat server",
    "topic": "leat entity",
    "stream": "leat relation",
    "table": "leat relation",
    "view": "leat relation",
}
_OF_A_GROUP = {
    "create": "apply",
    "add": "apply",
    "new": "apply",
    "update": "apply",
    "edit": "apply",
    "show": "get",
    "describe": "get",
    "status": "get",
    "ls": "list",
    "rm": "delete",
    "drop": "delete",
    "remove": "delete",
    "destroy": "delete",
    "kill": "stop",
    "terminate": "stop",
    "pause": "stop",
    "resume": "start",
    "tail": "logs",
}


def add_meant(error: Exception) -> None:
    """Add the command that was meant to the error of an unknown one; other errors stay as they are."""
    wrong: Any = error
    unknown = re.match(r"No such command '(.*?)'\.?", str(getattr(error, "message", "")))
    if unknown is None or getattr(error, "ctx", None) is None:
        return
    meant = meant_by(unknown[1], wrong.ctx.command_path, wrong.ctx.command.commands)
    if meant is not None:
        wrong.message = f"No such command '{unknown[1]}'. Try: {meant}"


def meant_by(word: str, path: str, commands: Mapping[str, Any]) -> str | None:
    """The command line that was meant; None if nothing fits.

    Args:
        word: as typed.
        path: of the group, such as ``leat query``.
        commands: of the group, by name.
    """
    if " " in path:
        ours = _OF_A_GROUP.get(word)
        return f"{path} {ours}" if ours in commands else None
    if word in _OF_THE_PROGRAM:
        return _OF_THE_PROGRAM[word]
    plural = next((name for name in commands if word in (f"{name}s", f"{name.removesuffix('y')}ies")), None)
    if plural is not None:
        return f"{path} {plural} list"
    of_groups = [f"{path} {group} {word}" for group in _groups_with(word, commands)]
    return " or ".join(of_groups[:3]) or None


def _groups_with(word: str, commands: Mapping[str, Any]) -> Iterator[str]:
    # Those of queries first: their commands are meant most often.
    for name in sorted(commands, key=lambda name: (name != "query", name)):
        if word in getattr(commands[name], "commands", {}):
            yield name
