"""``leat dev``, ``serve``, ``token``, ``doctor``, ``demo``, ``openapi``: what runs on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from leatstream.cli.connection import DATA_DIRECTORY
from leatstream.cli.exits import Exit
from leatstream.cli.output import Output, write_json, write_rows
from leatstream.cli.session import OutputOption

PORT = 8585


def dev(
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep nothing after the end.")] = False,
    data_dir: Annotated[Path, typer.Option(help="Where catalog, topics and checkpoints are kept.")] = Path(
        DATA_DIRECTORY
    ),
    port: Annotated[int, typer.Option(help="Port of the API; 0 picks a free one.", min=0, max=65535)] = PORT,
    kafka_bootstrap: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Use this broker, start none.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample/--no-sample", help="Produce sample records.")] = True,
    kinesis: Annotated[
        bool, typer.Option("--kinesis", help="Also start a local Kinesis, with page views in it.")
    ] = False,
    iceberg: Annotated[
        bool,
        typer.Option(
            "--iceberg", help="Also start an Iceberg catalog, with its files in the data directory."
        ),
    ] = False,
    clickhouse: Annotated[
        bool,
        typer.Option("--clickhouse", help="Also start a local ClickHouse, which holds tables and views."),
    ] = False,
    ready_file: Annotated[
        Path | None, typer.Option(help="Write JSON {url, token, kafka_bootstrap, pid} when all is up.")
    ] = None,
) -> None:
    """Start everything here: a catalog, Kafka, Spark, the API and sample data. Ctrl-C ends it."""
    from leatstream.cli.serving import run_dev
    from leatstream.dev.stack import DevOptions

    stores = {"kinesis": kinesis, "iceberg": iceberg, "clickhouse": clickhouse}
    options = DevOptions(
        ephemeral=ephemeral,
        data_dir=data_dir,
        port=port,
        kafka_bootstrap=kafka_bootstrap,
        sample=sample,
        stores=tuple(name for name, wanted in stores.items() if wanted),
        ready_file=ready_file,
    )
    raise typer.Exit(run_dev(options))


def serve() -> None:
    """Start the API as configured by LEATSTREAM_… variables."""
    from leatstream.cli.serving import run_server

    raise typer.Exit(run_server())


def token() -> None:
    """Make an administrator's token, to be given to servers as LEATSTREAM_BOOTSTRAP_TOKEN."""
    from leatstream.services.environment.authorization import mint_token

    typer.echo(mint_token()[0])


def doctor(
    tools: Annotated[bool, typer.Option("--tools", help="Only Java, Node.js and Terraform.")] = False,
    port: Annotated[int, typer.Option(help="Port that `leat dev` would use.", min=0, max=65535)] = PORT,
    data_dir: Annotated[
        Path, typer.Option(help="Where data would be kept.", envvar="LEATSTREAM_DATA_DIR")
    ] = Path(DATA_DIRECTORY),
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the exit status.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say what this machine has and lacks, and how to get it. Exit status 1 if something is missing."""
    from leatstream.dev.doctor import diagnose

    findings = diagnose(tools_only=tools, port=port, data_dir=data_dir)
    if quiet:
        pass
    elif output is Output.JSON:
        write_json([asdict(finding) for finding in findings])
    else:
        rows = [("ok" if f.ok else "MISSING", f.name, f.found, f.needed, f.remedy) for f in findings]
        write_rows(("", "piece", "found", "needed", "remedy"), rows, output)
    raise typer.Exit(Exit.OK if all(finding.ok for finding in findings) else Exit.FAILURE)


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave it all running and print where.")] = False,
) -> None:
    """Show the main job: deploy queries over Kinesis and Kafka as code, watch records flow, destroy."""
    from leatstream.cli.demo import run_demo

    raise typer.Exit(run_demo(keep=keep))


def openapi() -> None:
    """Print the OpenAPI document of the REST service."""
    from leatstream.rest.app import create_app
    from leatstream.rest.openapi import document, to_yaml

    # The document depends on the routes and models alone; no service is called.
    sys.stdout.write(to_yaml(document(create_app(cast(Any, None)))))
