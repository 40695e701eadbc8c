"""``leat <noun> list``: with an option for each filter that the list has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli.output import Output, write_items
from leatstream.cli.session import OutputOption, WideOption, open_client
from leatstream.cli.shell_names import parent_names

if TYPE_CHECKING:
    from leatstream.cli.client import Client
    from leatstream.cli.nouns import Noun

Parent = Annotated[str, typer.Argument(metavar="PARENT", autocompletion=parent_names)]
Command = Callable[..., None]


def add_list(app: typer.Typer, noun: Noun) -> None:
    """Add the command that lists every object of a noun."""

    @app.command("list", help=f"List {noun.plural}.")
    @_filtered(noun)
    def list_all(
        context: typer.Context,
        output: OutputOption = Output.TABLE,
        wide: WideOption = False,
        **filters: str | None,
    ) -> None:
        if noun.brief and output in (Output.TABLE, Output.CSV):
            filters = {**filters, "view": "brief"}
        found = _whole(open_client(context), noun.list_path(""), filters)
        write_items(found, noun.columns, output, wide=wide)


def add_list_within(app: typer.Typer, noun: Noun, parent_form: str) -> None:
    """Add the command that lists the objects of a noun in one parent.

    Args:
        app: takes the command.
        noun: whose list it is.
        parent_form: how the parent is written.
    """

    @app.command("list", help=f"List the {noun.plural} of one {parent_form.lower()}, PARENT.")
    @_filtered(noun)
    def list_within(
        context: typer.Context,
        parent: Parent,
        output: OutputOption = Output.TABLE,
        wide: WideOption = False,
        **filters: str | None,
    ) -> None:
        found = _whole(open_client(context), noun.list_path(parent), filters)
        write_items(found, noun.columns, output, wide=wide)


def _filtered(noun: Noun) -> Callable[[Command], Command]:
    """Give a list command an option for each filter of the noun."""
    helps = {"q": "Part of the name, in any case."}
    helps |= {name: f"Only {noun.plural} of this {name}." for name in noun.filters}
    if "state" in helps:
        helps["state"] = f"Only {noun.plural} in this state."

    def extend(command: Command) -> Command:
        kept = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[str | None, typer.Option(f"--{name}", help=text)],
            )
            for name, text in helps.items()
        ]
        # typer reads options from the signature, and their types from the annotations.
        every = [*kept, *added]
        command.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in every}
        return command

    return extend


def _whole(client: Client, path: str, filters: dict[str, str | None]) -> dict[str, Any]:
    """A list as the service would answer it on one page."""
    return {"items": client.items(path, filters), "next_page_token": None}
