"""``leat terraform``: puts the provider where Terraform looks for it.

The provider is a package of its own that the control plane never imports, so it is run as a program.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Work with Terraform.")


@app.callback()
def _root() -> None:
    """Keeps `install` a command of its own: typer would fold a single command into its parent."""


@app.command()
def install(
    mirror: Annotated[
        Path | None, typer.Option(help="Put it into this mirror directory, not the implied one.")
    ] = None,
    dev: Annotated[
        bool, typer.Option("--dev", help="Also print a dev_overrides block for Terraform's configuration.")
    ] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take it out again.")] = False,
) -> None:
    """Install the provider, so that `terraform init` finds it without any configuration."""
    arguments = [
        *(["--mirror", str(mirror)] if mirror else []),
        *(["--dev"] if dev else []),
        *(["--uninstall"] if uninstall else []),
    ]
    done = subprocess.run([sys.executable, "-m", "leatstream_terraform", "install", *arguments], check=False)
    raise typer.Exit(done.returncode)
