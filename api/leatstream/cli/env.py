"""``leat env``: the variables that name the running ``leat dev``, for this shell and what it starts."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from leatstream.cli.connection import NoServer, find_ready
from leatstream.cli.output import Output, write_json
from leatstream.cli.session import OutputOption

# Members of the ready file to what the provider, the constructs and the examples read.
_VARIABLES = {"url": "LEATSTREAM_URL", "token": "LEATSTREAM_TOKEN", "kafka_bootstrap": "LEATSTREAM_KAFKA"}
_ENDPOINT = "_endpoint"  # of a local store


class Shell(StrEnum):
    """Whose language the lines are in."""

    SH = "sh"
    FISH = "fish"
    POWERSHELL = "powershell"


def env(
    shell: Annotated[
        Shell, typer.Option(help="Language of the lines; sh is for bash and zsh too.")
    ] = Shell.SH,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the variables that name the `leat dev` that runs here: address, token, and those of its stores.

    The token is the administrator's: what has read the lines may do everything.
    """
    if output not in (Output.TABLE, Output.JSON):
        raise typer.BadParameter("the variables are lines for a shell, or json", param_hint="--output")
    found = find_ready(Path.cwd())
    if found is None:
        raise NoServer("No `leat dev` runs in this directory or above. Start one here with `leat dev`.")
    variables = variables_of(found[1])
    if output is Output.JSON:
        write_json(variables)
        return
    line, use = _SHELLS[shell]
    for name, value in variables.items():
        typer.echo(line(name, value))
    typer.echo(f"# {use}")


def variables_of(ready: Mapping[str, object]) -> dict[str, str]:
    """The variables for a ready file's contents."""
    named = {_name(member): value for member, value in ready.items()}
    return {name: value for name, value in named.items() if name is not None and isinstance(value, str)}


def _name(member: str) -> str | None:
    if member.endswith(_ENDPOINT):
        return f"LEATSTREAM_{member.removesuffix(_ENDPOINT).upper()}"
    return _VARIABLES.get(member)


def _sh(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _fish(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"set -gx {name} '{escaped}'"


def _powershell(name: str, value: str) -> str:
    escaped = value.replace("'", "''")
    return f"$Env:{name} = '{escaped}'"


_SHELLS: dict[Shell, tuple[Callable[[str, str], str], str]] = {
    Shell.SH: (_sh, 'Run: eval "$(leat env)"'),
    Shell.FISH: (_fish, "Run: leat env --shell fish | source"),
    Shell.POWERSHELL: (_powershell, "Run: leat env --shell powershell | Out-String | Invoke-Expression"),
}
