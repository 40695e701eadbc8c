"""``leat <noun> list | get | delete``: one set of commands for every noun of the REST service."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leatstream.cli.lists import add_list, add_list_within
from leatstream.cli.output import Output, stderr, write_object
from leatstream.cli.session import OutputOption, open_client
from leatstream.cli.shell_names import object_names, parent_names

if TYPE_CHECKING:
    pass

Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=object_names)]
Parent = Annotated[str, typer.Argument(metavar="PARENT", autocompletion=parent_names)]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@dataclass(frozen=True, slots=True)
class Noun:
    """How a noun is addressed and shown.

    Attributes:
        name: singular.
        plural: as lists are headed.
        form: how its name is written, for help texts.
        path: from the name as typed to the REST path.
        columns: dotted paths shown in lists.
        parent: what a list needs, such as ``database``; None = nothing.
        list_path: from the parent as typed to the REST path of the list.
        filters: of its list, besides part of the name.
        brief: whether its list has a brief view, which has all of ``columns``.
    """

    name: str
    plural: str
    form: str
    path: Callable[[str], str]
    columns: tuple[str, ...]
    list_path: Callable[[str], str]
    parent: str | None = None
    filters: tuple[str, ...] = ()
    brief: bool = False


def flat(collection: str) -> Callable[[str], str]:
    """Paths of nouns that are addressed by one segment."""

    def path(name: str) -> str:
        from leatstream.cli.client import segment

        return f"/v1/{collection}/{segment(name)}"

    return path


def exact_path(collection: str) -> Callable[[str], str]:
    """Paths of accounts: an address of mail need not stand in double quotes."""

    def path(name: str) -> str:
        return flat(collection)(account_name(name))

    return path


def account_name(name: str) -> str:
    """The name of an account as SQL writes it."""
    from leatstream.model.names import quote

    return quote(name) if not name.startswith('"') and any(mark in name for mark in "@. ") else name


def schema_path(name: str) -> str:
    """``database.schema`` as a REST path."""
    from leatstream.cli.client import segment
    from leatstream.model.names import quote, split

    try:
        parts = split(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if len(parts) != 2:
        raise typer.BadParameter(f"{name!r} is not DATABASE.SCHEMA")
    return f"/v1/databases/{segment(quote(parts[0]))}/schemas/{segment(quote(parts[1]))}"


def split_entity(name: str) -> tuple[str, str]:
    """``store/entity`` as two names; a slash inside double quotes does not part them."""
    quoted = False
    for at, character in enumerate(name):
        if character == '"':
            quoted = not quoted
        elif character == "/" and not quoted and 0 < at < len(name) - 1:
            return name[:at], name[at + 1 :]
    raise typer.BadParameter(f"{name!r} is not STORE/ENTITY")


def entity_path(name: str) -> str:
    """``store/entity`` as a REST path."""
    from leatstream.cli.client import segment

    store, entity = split_entity(name)
    return f"/v1/stores/{segment(store)}/entities/{segment(entity)}"


def _under(collection: str, child: str) -> Callable[[str], str]:
    return lambda parent: f"{flat(collection)(parent)}/{child}"


def _top(collection: str) -> Callable[[str], str]:
    return lambda _parent: f"/v1/{collection}"


NOUNS = (
    Noun(
        "database",
        "databases",
        "DATABASE",
        flat("databases"),
        ("name", "comment", "owner", "created_at"),
        _top("databases"),
    ),
    Noun(
        "schema",
        "schemas",
        "DATABASE.SCHEMA",
        schema_path,
        ("fqn", "comment", "owner", "created_at"),
        _under("databases", "schemas"),
        "DATABASE",
    ),
    Noun(
        "store",
        "stores",
        "STORE",
        flat("stores"),
        ("name", "kind", "status.state", "status.message", "owner"),
        _top("stores"),
        filters=("kind", "state"),
    ),
    Noun(
        "secret",
        "secrets",
        "SECRET",
        flat("secrets"),
        ("name", "type", "version", "comment", "owner"),
        _top("secrets"),
    ),
    Noun(
        "schema-registry",
        "schema registries",
        "SCHEMA_REGISTRY",
        flat("schema-registries"),
        ("name", "type", "uris", "username", "comment"),
        _top("schema-registries"),
    ),
    Noun(
        "descriptor-source",
        "descriptor sources",
        "DESCRIPTOR_SOURCE",
        flat("descriptor-sources"),
        ("name", "size", "sha256", "comment"),
        _top("descriptor-sources"),
    ),
    Noun(
        "entity",
        "entities",
        "STORE/ENTITY",
        entity_path,
        ("name", "effective.partitions", "effective.replicas", "effective.shards"),
        _under("stores", "entities"),
        "STORE",
    ),
    Noun(
        "relation",
        "relations",
        "DATABASE.SCHEMA.NAME",
        flat("relations"),
        ("fqn", "kind", "store", "topic=effective.topic.value", "value_format", "created_by_query"),
        _top("relations"),
        filters=("kind", "database", "schema", "store"),
        brief=True,
    ),
    Noun(
        "function",
        "functions",
        "FUNCTION",
        flat("functions"),
        ("name", "returns", "source", "handler", "aggregate", "owner"),
        _top("functions"),
    ),
    Noun(
        "function-source",
        "function-sources",
        "FUNCTION_SOURCE",
        flat("function-sources"),
        ("name", "file", "language", "comment", "owner"),
        _top("function-sources"),
    ),
    Noun(
        "application",
        "applications",
        "APPLICATION",
        flat("applications"),
        ("name", "status.state", "queries", "relations", "virtual_relations", "status.message"),
        _top("applications"),
        filters=("state",),
    ),
    Noun(
        "savepoint",
        "savepoints",
        "SAVEPOINT",
        flat("savepoints"),
        ("name", "query", "state", "batch", "created_at", "message"),
        _top("savepoints"),
        filters=("state",),
    ),
    Noun(
        "role",
        "roles",
        "ROLE",
        flat("roles"),
        ("name", "inherits", "comment", "owner"),
        _top("roles"),
    ),
    Noun(
        "user",
        "users",
        "USER",
        exact_path("users"),
        ("name", "roles", "default_role", "disabled", "comment"),
        _top("users"),
    ),
    Noun(
        "service-account",
        "service accounts",
        "SERVICE_ACCOUNT",
        exact_path("service-accounts"),
        ("name", "roles", "default_role", "disabled", "comment"),
        _top("service-accounts"),
    ),
    Noun(
        "api-token",
        "API tokens",
        "API_TOKEN",
        flat("tokens"),
        ("name", "account", "role", "scope", "expires_at", "last_used_at"),
        _top("tokens"),
    ),
    Noun(
        "invitation",
        "invitations",
        "MAIL",
        exact_path("invitations"),
        ("mail", "roles", "default_role", "scope", "expires_at", "created_by"),
        _top("invitations"),
    ),
    Noun(
        "query",
        "queries",
        "QUERY",
        flat("queries"),
        ("name", "kind", "status.state", "sources", "sink", "status.job.mode", "status.message"),
        _top("queries"),
        filters=("state", "kind", "database", "schema", "store", "application"),
        brief=True,
    ),
)


def make_app(noun: Noun, *, with_delete: bool = True, about: str | None = None) -> typer.Typer:
    """The commands of a noun.

    Args:
        noun: the noun.
        with_delete: whether it is deleted as most nouns are.
        about: for the help, where there are more commands than for most nouns.
    """
    app = typer.Typer(no_args_is_help=True, help=about or f"List, show and delete {noun.plural}.")
    if noun.parent is None:
        add_list(app, noun)
    else:
        add_list_within(app, noun, noun.parent)

    @app.command("get", help=f"Show one {noun.name}; its name is written {noun.form}.")
    def get(
        context: typer.Context,
        name: Name,
        output: OutputOption = Output.TABLE,
    ) -> None:
        write_object(_told_first(open_client(context).call("GET", noun.path(name)), output), output)

    if with_delete:

        @app.command("delete", help=f"Delete one {noun.name}; its name is written {noun.form}.")
        def delete(
            context: typer.Context,
            name: Name,
            yes: YesOption = False,
        ) -> None:
            confirm(f"Delete {noun.name} {name}?", yes)
            open_client(context).call("DELETE", noun.path(name))
            stderr().print(f"Deleted {noun.name} {name}.", markup=False)

    return app


def _told_first(body: dict[str, Any], output: Output) -> dict[str, Any]:
    """For people what is asked first stands first: the state of a thing, and its cause."""
    if output is not Output.TABLE or not isinstance(body.get("status"), dict):
        return body
    first = ("state", "since", "message", "error")
    status = {key: body["status"].get(key) for key in first} | body["status"]
    return {key: body.get(key) for key in ("name", "kind")} | {"status": status} | body | {"status": status}


def confirm(question: str, yes: bool) -> None:
    """Ask a person; a script is taken at its word."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
