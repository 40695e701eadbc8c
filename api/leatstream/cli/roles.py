"""``leat role``, ``user`` and ``service-account``: what they have beyond other nouns, grants and members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from leatstream.cli.nouns import NOUNS, Name, Noun, account_name, make_app
from leatstream.cli.output import Output, stderr, write_object
from leatstream.cli.session import OutputOption, open_client
from leatstream.cli.shell_names import object_names

_NOUNS = {noun.name: noun for noun in NOUNS}
_ROLE = _NOUNS["role"]
app = make_app(_ROLE, about="List, show, create, grant to and delete roles.")
_NEW = {"If-None-Match": "*"}

Role = Annotated[str, typer.Argument(metavar="ROLE", autocompletion=object_names)]
PrivilegeArgument = Annotated[str, typer.Argument(metavar="PRIVILEGE", help="Such as select or usage.")]
On = Annotated[
    str,
    typer.Argument(
        metavar="ON", help="KIND:NAME, such as store:kafka_store; KIND alone: all of them; or organization."
    ),
]
Member = Annotated[
    str, typer.Argument(metavar="MEMBER", help="user:NAME, service_account:NAME or role:NAME.")
]
InDatabase = Annotated[str | None, typer.Option(help="All of the kind in this database.")]
InSchema = Annotated[str | None, typer.Option(help="All of the kind in this schema, DATABASE.SCHEMA.")]
Entities = Annotated[
    str | None, typer.Option(help="Entities of the store: a name, or the start of names and *.")
]
Comment = Annotated[str | None, typer.Option(help="Free text.")]


@app.command()
def create(
    context: typer.Context,
    name: Role,
    inherits: Annotated[list[str] | None, typer.Option(help="A role whose grants it has too.")] = None,
    comment: Comment = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a role."""
    body = {"inherits": inherits, "comment": comment}
    write_object(open_client(context).call("PUT", _ROLE.path(name), body=body, headers=_NEW), output)


@app.command()
def grant(
    context: typer.Context,
    role: Role,
    privilege: PrivilegeArgument,
    on: On,
    in_database: InDatabase = None,
    in_schema: InSchema = None,
    entities: Entities = None,
    with_grant_option: Annotated[
        bool, typer.Option("--with-grant-option", help="The role may grant it to others.")
    ] = False,
) -> None:
    """Grant a privilege to a role."""
    path, params = _grant(role, privilege, on, in_database, in_schema, entities)
    body = {"grant_option": with_grant_option}
    open_client(context).call("PUT", path, params=params, body=body)
    stderr().print(f"Granted {privilege.upper()} on {_told(on, params)} to role {role}.", markup=False)


@app.command()
def revoke(
    context: typer.Context,
    role: Role,
    privilege: PrivilegeArgument,
    on: On,
    in_database: InDatabase = None,
    in_schema: InSchema = None,
    entities: Entities = None,
) -> None:
    """Revoke a privilege from a role."""
    path, params = _grant(role, privilege, on, in_database, in_schema, entities)
    open_client(context).call("DELETE", path, params=params)
    stderr().print(f"Revoked {privilege.upper()} on {_told(on, params)} from role {role}.", markup=False)


@app.command()
def add_member(context: typer.Context, role: Role, member: Member) -> None:
    """Give a role to a user, a service account or a role."""
    open_client(context).call("PUT", _membership(role, member), body={})
    stderr().print(f"Gave role {role} to {member}.", markup=False)


@app.command()
def remove_member(context: typer.Context, role: Role, member: Member) -> None:
    """Take a role from a user, a service account or a role."""
    open_client(context).call("DELETE", _membership(role, member))
    stderr().print(f"Took role {role} from {member}.", markup=False)


def _grant(
    role: str, privilege: str, on: str, in_database: str | None, in_schema: str | None, entities: str | None
) -> tuple[str, dict[str, Any]]:
    from leatstream.cli.client import segment

    kind, _, name = on.partition(":")
    path = f"{_ROLE.path(role)}/grants/{segment(privilege.lower())}/{segment(kind.lower())}"
    within = {"in_database": in_database, "in_schema": in_schema, "entities": entities}
    return path, {"name": name or None, **within}


def _told(on: str, params: Mapping[str, Any]) -> str:
    kind, name = on.lower().partition(":")[0], params["name"]
    words = kind.replace("_", " ")
    if kind == "organization":
        return "the organization"
    place = [f"in {one} {params[f'in_{one}']}" for one in ("schema", "database") if params[f"in_{one}"]]
    of = [f"entities {params['entities']}"] if params["entities"] else []
    return " ".join([f"{words} {name}" if name else f"every {words}", *place, *of])


def _membership(role: str, member: str) -> str:
    from leatstream.cli.client import segment

    kind, mark, name = member.partition(":")
    if not mark or not name:
        raise typer.BadParameter(f"{member!r} is not KIND:NAME, such as user:ann@example.com")
    return f"{_ROLE.path(role)}/members/{segment(kind.lower())}/{segment(account_name(name))}"


def account_app(noun_name: str) -> typer.Typer:
    """The commands of users or of service accounts.

    Args:
        noun_name: ``user`` or ``service-account``.
    """
    noun = _NOUNS[noun_name]
    made = make_app(noun, about=f"List, show, create, disable and delete {noun.plural}.")
    word = noun.name.replace("-", " ")

    @made.command("create", help=f"Create a {word}.")
    def create_account(
        context: typer.Context,
        name: Name,
        role: Annotated[list[str] | None, typer.Option(help="A role that it may act in.")] = None,
        default_role: Annotated[str | None, typer.Option(help="Role of tokens that name none.")] = None,
        comment: Comment = None,
        output: OutputOption = Output.TABLE,
    ) -> None:
        body = {"roles": role, "default_role": default_role, "comment": comment}
        write_object(open_client(context).call("PUT", noun.path(name), body=body, headers=_NEW), output)

    @made.command("disable", help=f"Refuse the tokens of a {word} until it is enabled again.")
    def disable(context: typer.Context, name: Name) -> None:
        _turn(context, noun, name, disabled=True)

    @made.command("enable", help=f"Accept the tokens of a disabled {word} again.")
    def enable(context: typer.Context, name: Name) -> None:
        _turn(context, noun, name, disabled=False)

    return made


def _turn(context: typer.Context, noun: Noun, name: str, *, disabled: bool) -> None:
    """Refuse or accept an account's tokens; all else of it stays."""
    client = open_client(context)
    found = client.call("GET", noun.path(name))
    # Roles that are left out stay; a change by somebody else meanwhile is refused.
    body = {"comment": found["comment"], "default_role": found["default_role"], "disabled": disabled}
    client.call("PUT", noun.path(name), body=body, headers={"If-Match": f'"{found["generation"]}"'})
    done = "are refused" if disabled else "are accepted again"
    stderr().print(f"Tokens of {name} {done}.", markup=False)
