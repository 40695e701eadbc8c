"""``leat init``: the files of a small project, to be changed into one's own."""

from __future__ import annotations

from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from leatstream.cli.output import stderr

# What Terraform leaves behind: its state may hold what nobody else should see.
_IGNORED = ".terraform/\n*.tfstate\n*.tfstate.*\n.leatstream/\n"
_SUFFIX = ".template"  # of files that the tools for our own code must not take for it
_NEXT = {
    "terraform": "leat terraform install && terraform init && terraform plan",
    "cdktf": "leat terraform install && python main.py",
    "sql": "leat sql -f pipeline.sql --dry-run",
}


class Form(StrEnum):
    """How a project declares its objects."""

    TERRAFORM = "terraform"
    CDKTF = "cdktf"
    SQL = "sql"


def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to; it is created if it does not exist.")
    ] = Path(),
    form: Annotated[Form, typer.Option(help="How to declare streams and queries.")] = Form.TERRAFORM,
) -> None:
    """Write the files of a small project. No existing file is changed."""
    files = skeleton(form)
    taken = sorted(name for name in files if (directory / name).exists() or (directory / name).is_symlink())
    if taken:
        raise typer.BadParameter(
            f"{directory} has {', '.join(taken)} already; nothing is overwritten. Name another directory.",
            param_hint="DIR",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise typer.BadParameter(
            f"{directory} cannot be written: {error.strerror}", param_hint="DIR"
        ) from error
    for name in files:
        typer.echo(str(directory / name))
    place = "" if directory == Path() else f"cd {directory} && "
    stderr().print(f"Next: {place}{_NEXT[form]}", markup=False, soft_wrap=True)


def skeleton(form: Form) -> dict[str, str]:
    """File names of a form's project to their texts."""
    folder = resources.files("leatstream.cli") / "skeletons" / form.value
    found = {one.name.removesuffix(_SUFFIX): one.read_text(encoding="utf-8") for one in folder.iterdir()}
    ignored = _IGNORED if form is not Form.CDKTF else f"cdktf.out/\n{_IGNORED}"
    return {name: found[name] for name in sorted(found)} | {".gitignore": ignored}
