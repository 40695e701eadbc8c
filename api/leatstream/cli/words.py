"""``leat vocabulary``: the words of the server's SQL, for editors that complete."""

from __future__ import annotations

import typer

from leatstream.cli.output import Output, write_json, write_rows
from leatstream.cli.session import OutputOption, open_client

_KINDS = ("statements", "clauses", "types")


def vocabulary(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Show the words of SQL: keywords, functions with their signatures, types and properties."""
    answer = open_client(context).call("GET", "/v1/sql/vocabulary")
    if output is Output.JSON:
        write_json(answer)
        return
    rows = [(kind.removesuffix("s"), word, "") for kind in _KINDS for word in answer[kind]]
    rows += [("function", one["signature"], one["returns"]) for one in answer["functions"]]
    rows += [
        (f"{place} property", name, "") for place, names in answer["properties"].items() for name in names
    ]
    write_rows(("kind", "word", "returns"), rows, output)
