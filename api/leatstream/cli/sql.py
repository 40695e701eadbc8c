"""``leat sql``: statements from the command line, a file, a pipe or a prompt."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli.attachments import attachments
from leatstream.cli.output import (
    Output,
    printable,
    write_effective,
    write_json,
    write_list,
    write_ndjson,
    write_object,
    write_rows,
)
from leatstream.cli.selecting import follow, is_stream
from leatstream.cli.session import OutputOption, WideOption, open_client
from leatstream.cli.wait_line import WaitLine

if TYPE_CHECKING:
    from leatstream.cli.client import Client

Context = dict[str, Any]


def sql(
    context: typer.Context,
    statements: Annotated[str | None, typer.Argument(help="Statements to run, as with -e.")] = None,
    execute: Annotated[str | None, typer.Option("--execute", "-e", help="Statements to run.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="File of statements; - is the pipe.")
    ] = None,
    database: Annotated[str | None, typer.Option(help="Database of unqualified names.")] = None,
    schema: Annotated[str | None, typer.Option(help="Schema of unqualified names.")] = None,
    store: Annotated[str | None, typer.Option(help="Store of new relations.")] = None,
    role: Annotated[str | None, typer.Option(help="Role to act in; else the token's.")] = None,
    wait: Annotated[
        int, typer.Option("--wait", help="Seconds to wait for a new query's job to run.", min=0, max=60)
    ] = 0,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="Keep the changes of all statements or of none.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the statements and show their plans; change nothing.")
    ] = False,
    allow_files: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder whose files a script may send with 'file' = '@…', besides its own; may be repeated."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    wide: WideOption = False,
) -> None:
    """Run SQL statements. Without any, -f or a pipe: a prompt."""
    if [statements, execute, file].count(None) < 2:
        raise typer.BadParameter("give the statements once: as an argument, with -e or with -f")
    execute = statements if execute is None else execute
    if dry_run and (wait or atomic):
        raise typer.BadParameter("nothing is changed: leave --wait and --atomic out", param_hint="--dry-run")
    client = open_client(context)
    names: Context = {"database": database, "schema": schema, "store": store}
    if role is not None:
        names["role"] = role
    if wait:
        names["wait_timeout"] = f"{wait}s"
    if atomic:
        names["atomic"] = True
    text = checked_argument(execute) if execute is not None else read_text(file)
    if text is not None and not text.strip():
        raise typer.BadParameter("the text of the statements is empty")
    if dry_run:
        if text is None:
            raise typer.BadParameter("give the statements", param_hint="--dry-run")
        from leatstream.cli.dry_run import check

        raise typer.Exit(check(client, text, names, output))
    if text is None:
        from leatstream.cli.prompt import Prompt

        Prompt(client, names, output, wide=wide).run()
        return
    if execute is None:  # who wrote a script need not be who runs it
        piped = file is None or str(file) == "-"
        origin = "the piped text" if piped else str(file)
        folder = Path() if piped or file is None else file.parent
        files = attachments(text, folder, allow_files or (), origin)
    else:
        files = attachments(text)
    run(client, text, names, output, files, wide=wide)


def run(
    client: Client,
    text: str,
    names: Context,
    output: Output,
    files: dict[str, str] | None = None,
    *,
    wide: bool = True,
) -> Context:
    """Run statements, write their results, and return the context that USE may have changed.

    Args:
        client: of the service.
        text: the statements.
        names: the context.
        output: form of the results.
        files: that the statements name, in base64; None = a person has typed them, and may name any.
        wide: whether a list may be wider than the terminal.

    Raises:
        ProblemAnswer: a statement failed; results of those before it have been written.
    """
    from leatstream.cli.client import ProblemAnswer

    files = attachments(text) if files is None else files
    body = {"sql": text, **names, **({"files": files} if files else {})}
    try:
        with WaitLine("waiting for the server"):
            answer = client.call("POST", "/v1/statements", body=body)
    except ProblemAnswer as failure:
        failure.sql = text
        if output is not Output.JSON:
            write_results([r for r in failure.problem.get("results") or [] if not is_stream(r)], output, wide)
        raise
    streamed = [is_stream(result) for result in answer["results"]]
    if output is Output.JSON and not (streamed and all(streamed)):
        write_json(answer)
    for result, rows_come in zip(answer["results"], streamed, strict=True):
        if rows_come:
            follow(client, result, output)
        elif output is not Output.JSON:
            write_results([result], output, wide)
    return {**names, **answer["context"]}


def write_results(results: list[dict[str, Any]], output: Output, wide: bool = True) -> None:
    """Result sets as such; of the others one line each that says what was done.

    Args:
        results: of the statements, as the service answers them.
        output: form.
        wide: show every column in full.
    """
    for result in results:
        if result.get("columns") is not None and result.get("rows") is not None:
            _write_result_set(result, output, wide)
            if output is Output.TABLE:
                _write_freshness(result)
                _write_effective(result)
        elif output is Output.NDJSON:
            write_ndjson([result])
        else:
            done = " ".join(str(result["kind"]).replace("_", " ").upper().split())
            about = _what(result)
            line = printable(f"{done}: {result['status']}{f' ({about})' if about else ''}")
            typer.echo(line, err=output is Output.CSV)
            _warn(result.get("object") or {})


def _warn(thing: dict[str, Any]) -> None:
    """The statement has succeeded, but not all is well: a store does not answer, a record cannot be read."""
    for text in thing.get("warnings") or []:
        typer.echo(printable(f"warning: {text}"), err=True)
    if thing.get("state") == "errored":
        warning = (
            f"warning: the {thing['noun']} is kept, but cannot be used yet. {thing.get('message') or ''}"
        )
        typer.echo(printable(warning.rstrip()), err=True)


def _write_result_set(result: dict[str, Any], output: Output, wide: bool) -> None:
    columns, rows = result["columns"], result["rows"]
    heads = [column["name"] for column in columns]
    if output is Output.TABLE and len(rows) == 1 and any(column.get("type") == "JSON" for column in columns):
        write_object(dict(zip(heads, rows[0], strict=True)), output)  # a plan is no table
    elif str(result.get("kind")).startswith("list_"):
        write_list(heads, rows, output, wide=wide)
    else:
        write_rows(heads, rows, output)


def _write_effective(result: dict[str, Any]) -> None:
    """Of a relation that is described: its properties in force, below its columns."""
    effective = (result.get("object") or {}).get("effective")
    if effective:
        typer.echo()
        write_effective(effective)


def _write_freshness(result: dict[str, Any]) -> None:
    """As of when a SELECT over materialized views was answered, beside the rows."""
    for one in result.get("freshness") or []:
        time, watermark = one.get("batch_time"), one.get("watermark")
        when = f"as of batch {one['batch_id']}, {time}" if time else "before its first batch"
        typer.echo(f"{one['view']}: {when}{f', watermark {watermark}' if watermark else ''}", err=True)
    if result.get("truncated"):
        typer.echo("There are more rows; LIMIT or WHERE asks for fewer.", err=True)


def _what(result: dict[str, Any]) -> str:
    thing = result.get("object") or {}
    name = thing.get("fqn") or thing.get("name")
    query = result.get("query")
    return ", ".join(text for text in (name, f"query {query}" if query else None) if text)


def read_text(file: Path | None) -> str | None:
    """The text of a file or of the pipe; None where a person sits at the keyboard."""
    if file is not None and str(file) != "-":
        try:
            return _decoded(file.read_bytes(), str(file))
        except OSError as error:
            raise typer.BadParameter(f"{file} cannot be read: {error}") from error
    if file is None and sys.stdin.isatty():
        return None
    return _decoded(sys.stdin.buffer.read(), "standard input")


def require_text(file: Path | None) -> str:
    """The text of a file or of the pipe; BadParameter where a person sits at the keyboard."""
    text = read_text(file)
    if text is None:
        raise typer.BadParameter("give --file, or a pipe")
    return text


def _decoded(data: bytes, source: str) -> str:
    """The text of UTF-8 bytes; BadParameter with the place of the first that is none."""
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"byte 0x{data[error.start]:02x} at offset {error.start}, line {line}"
        raise typer.BadParameter(f"{source} is not UTF-8: {place}; save it as UTF-8") from None


def checked_argument(text: str) -> str:
    """An argument of the command line; BadParameter where its bytes are not UTF-8."""
    return _decoded(text.encode("utf-8", "surrogateescape"), "the argument")
