"""``leat sql --dry-run``: what the statements would do, and everything that is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leatstream.cli.exits import Exit
from leatstream.cli.output import (
    Output,
    printable,
    stderr,
    write_json,
    write_ndjson,
    write_object,
    write_rows,
)
from leatstream.cli.problems import render
from leatstream.cli.wait_line import WaitLine

if TYPE_CHECKING:
    from leatstream.cli.client import Client


def check(client: Client, text: str, names: dict[str, Any], output: Output) -> Exit:
    """Check statements without running them, and show the plans and the problems.

    Args:
        client: of the service.
        text: the statements.
        names: the context.
        output: form of the results.

    Returns:
        OK, or INVALID_SQL if anything is wrong.

    Raises:
        ProblemAnswer: the text cannot be read.
    """
    from leatstream.cli.client import ProblemAnswer

    body = {"sql": text, **{key: value for key, value in names.items() if value is not None}}
    try:
        with WaitLine("waiting for the server"):
            answer = client.call("POST", "/v1/statements:validate", body=body)
    except ProblemAnswer as failure:
        failure.sql = text
        raise
    if output is Output.JSON:
        write_json(answer)
    elif output is Output.NDJSON:
        write_ndjson(answer["statements"])
    elif output is Output.CSV:
        rows = [(one["kind"], not one["problems"]) for one in answer["statements"]]
        write_rows(("kind", "valid"), rows, output)
    else:
        for one in answer["statements"]:
            _show(one, text)
    return Exit.OK if answer["valid"] else Exit.INVALID_SQL


def _show(one: dict[str, Any], text: str) -> None:
    kind = printable(str(one["kind"]).replace("_", " ").upper())
    problems = one.get("problems") or []
    write_object({kind: "refused" if problems else one.get("plan") or "valid"}, Output.TABLE)
    if problems:
        stderr().print(render({"errors": problems}, text))
