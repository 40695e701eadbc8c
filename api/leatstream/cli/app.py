"""All commands of ``leat``, and what becomes of their errors."""

from __future__ import annotations

import copy
import functools
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_command, get_command_name

from leatstream import __version__
from leatstream.cli import (
    access,
    admin,
    applications,
    audit,
    catalog,
    drivers,
    embedded,
    env,
    events,
    export,
    function_sources,
    graphql,
    invitations,
    lineage,
    login,
    project,
    queries,
    records,
    registries,
    relations,
    roles,
    secrets,
    server,
    sql,
    stores,
    terraform,
    words,
)
from leatstream.cli.connection import NoServer
from leatstream.cli.examples import add_examples
from leatstream.cli.exits import Exit, status_of
from leatstream.cli.extras import missing
from leatstream.cli.nouns import NOUNS, make_app
from leatstream.cli.output import Output, printable, stderr
from leatstream.cli.session import Session
from leatstream.cli.unknown_commands import add_meant
from leatstream.cli.waiting import WaitFailure, WaitTimeout
from leatstream.errors import LeatstreamError


class _Program(TyperGroup):
    """Says of an unknown command which one is meant, and where the option --url stands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            # typer has no public name for the class of unknown options.
            if getattr(error, "option_name", None) == "--url":
                wrong: Any = error
                command = wrong.ctx.command_path.removeprefix("leat ")
                wrong.message += f". It stands before the command: leat --url URL {command} …"
            add_meant(error)
            raise


app = typer.Typer(
    cls=_Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Streaming SQL over your own stores, deployed as code.",
    epilog="The server: --url before the command (leat --url URL sql …), or LEATSTREAM_URL and "
    "LEATSTREAM_TOKEN, or the `leat dev` that runs here.",
)


@app.callback()
def _root(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="Base URL of the service.")] = None,
    version: Annotated[bool, typer.Option("--version", "-V", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"leat {__version__}")
        raise typer.Exit
    context.ensure_object(Session).url = url


app.command()(embedded.dev)
app.command()(embedded.serve)
app.command()(embedded.token)
app.command()(embedded.doctor)
app.command()(env.env)
app.command()(embedded.demo)
app.command()(embedded.openapi)
app.command()(project.init)
app.command("open")(server.open_console)
app.command("server")(server.show_server)
app.command()(server.capabilities)
app.command()(sql.sql)
app.command("print")(records.print_records)
app.command()(graphql.graphql)
app.command()(export.export)
app.command()(lineage.lineage)
app.command()(events.events)
app.command()(words.vocabulary)
# Nouns that have commands besides those of every noun.
_WITH_MORE = {
    "store": stores.app,
    "schema-registry": registries.app,
    "relation": relations.app,
    "secret": secrets.app,
    "query": queries.app,
    "application": applications.app,
    "function-source": function_sources.app,
    "role": roles.app,
    "user": roles.account_app("user"),
    "service-account": roles.account_app("service-account"),
    "api-token": access.app,
    "invitation": invitations.app,
}
for _noun in NOUNS:
    if _noun.name not in _WITH_MORE:
        app.add_typer(make_app(_noun), name=_noun.name)
for _name, _app in _WITH_MORE.items():
    app.add_typer(_app, name=_name)
app.command()(login.login)
app.command()(login.logout)
app.command()(access.whoami)
app.command()(audit.audit)
app.add_typer(drivers.app, name="driver")
app.add_typer(admin.app, name="admin")
app.add_typer(catalog.app, name="catalog")
app.add_typer(terraform.app, name="terraform")
add_examples(app)


def _word(command: Any) -> str:
    return str(command.name or get_command_name(command.callback.__name__))


_NAMES = {_word(one) for one in app.registered_commands} | {one.name for one in app.registered_groups}


def first_word(argv: Sequence[str]) -> str | None:
    """The command or the noun that a command line begins with; None where it begins otherwise."""
    rest = iter(argv)
    for word in rest:
        if word == "--url":
            next(rest, None)
        elif not word.startswith("--url="):
            return word if word in _NAMES else None
    return None


@functools.cache
def program(word: str | None = None) -> Any:
    """The commands as they are run.

    To build those of all nouns takes longer than most of them, so a word has only its own built.

    Args:
        word: of ``first_word``; None = every command.
    """
    part = copy.copy(app)
    if word is not None:
        part.registered_commands = [one for one in app.registered_commands if _word(one) == word]
        part.registered_groups = [one for one in app.registered_groups if one.name == word]
    return get_command(part)


def run(argv: Sequence[str]) -> int:
    """Run one command line.

    Args:
        argv: arguments without the program's name.

    Returns:
        The exit status; errors have been written to standard error.
    """
    session = Session()
    try:
        # It ends by SystemExit: 0, 2 for wrong usage, 130 for Ctrl-C, or what a command asked for.
        program(first_word(argv))(list(argv), prog_name="leat", obj=session)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.OK
    except NoServer as error:
        return _fail("No server", str(error), Exit.UNREACHABLE, session)
    except LeatstreamError as error:
        return _fail_known(error, session)
    except ModuleNotFoundError as error:
        detail = missing(error)
        if detail is None:
            raise
        return _fail("Not installed", detail, Exit.FAILURE, session)
    except Exception as error:
        return _fail_of_client(error, session)
    return Exit.OK


def _fail_of_client(error: Exception, session: Session) -> int:
    """Errors of modules that are imported only when they are needed."""
    from leatstream.cli.client import ProblemAnswer, Unreachable

    if isinstance(error, ProblemAnswer):
        return _fail_problem(error.problem, error.sql, session)
    if isinstance(error, Unreachable):
        return _fail("No answer", str(error), Exit.UNREACHABLE, session)
    if isinstance(error, WaitTimeout):
        return _fail("The wait timed out", str(error), Exit.TIMED_OUT, session)
    if isinstance(error, WaitFailure):
        return _fail_wait(error, session)
    raise error


def _fail(title: str, detail: str, status: Exit, session: Session) -> int:
    if session.output is Output.JSON:
        _write_problem({"title": title, "detail": detail})
    else:
        stderr().print(Text.assemble(("error", "bold red"), (f": {detail}", "bold")))
    return status


def _fail_wait(error: WaitFailure, session: Session) -> int:
    if session.output is Output.JSON:
        document = {"detail": error.detail, **({"code": error.code} if error.code else {})}
        fault = {**document, **({"hint": error.hint} if error.hint else {})}
        _write_problem({"title": "The wait failed", **document, "errors": [fault]})
    else:
        stderr().print(printable(error.detail), style="bold red", markup=False)
        if error.hint:
            stderr().print(f"hint: {printable(error.hint)}", markup=False)
    return Exit.FAILURE


def _fail_problem(problem: dict[str, Any], sql_text: str | None, session: Session) -> int:
    if session.output is Output.JSON:
        _write_problem(problem)
    else:
        from leatstream.cli.problems import render

        stderr().print(render(problem, sql_text))
    return status_of(problem)


def _write_problem(problem: dict[str, Any]) -> None:
    import json

    sys.stderr.write(json.dumps(problem, ensure_ascii=False, indent=2) + "\n")


def _fail_known(error: LeatstreamError, session: Session) -> int:
    """An error of our own that never went over the wire, such as a missing Java."""
    faults = [{"detail": f.detail, "code": f.code, "hint": f.hint} for f in error.faults]
    problem = {"code": error.code, "detail": error.detail, "status": error.status, "errors": faults}
    return _fail_problem(problem, None, session)
