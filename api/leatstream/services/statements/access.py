"""Statements about access: each ends in the same service functions as the typed resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from leatstream.errors import CatalogError, RequestError
from leatstream.model.access import (
    BUILT_IN_ROLE,
    OBJECT_PRIVILEGES,
    ORGANIZATION,
    AccountKind,
    Grant,
    Privilege,
    Role,
    Scope,
    Target,
    has_own_rights,
)
from leatstream.model.names import quote
from leatstream.services.environment import Context, Environment, Precondition, Principal
from leatstream.services.environment.pages import every
from leatstream.services.environment.results import Run, StatementResult
from leatstream.services.nouns import accounts, grants, invitations, memberships, ownership, roles, tokens
from leatstream.services.nouns.names import qualify_schema, single
from leatstream.services.staging.atomic import discarded
from leatstream.services.staging.catalog_view import CatalogView, qualify
from leatstream.services.statements.invitations import invite_user, listed_invitations
from leatstream.services.statements.result_tables import META, Table, meta_cells, text_columns
from leatstream.sql import access_statements as access
from leatstream.sql import statements as ast
from leatstream.sql.property_values import PropertyReader

_ACCOUNT_KEYS = ("roles", "default.role", "disabled")
_TOKEN_KEYS = ("account", "role", "scope", "lifetime.days")


def create_role(run: Run, s: access.CreateRole) -> StatementResult:
    """CREATE ROLE."""
    name = single(s.name)
    _unless_there(
        s.if_not_exists,
        lambda: roles.put_role(
            run.env, run.principal, name, comment=s.comment, pre=Precondition(must_be_new=True)
        ),
    )
    return StatementResult("create_role", object={"noun": "role", "name": name})


def create_account(run: Run, s: access.CreateAccount) -> StatementResult:
    """CREATE USER or SERVICE_ACCOUNT."""
    name, kind = single(s.name), AccountKind(s.noun)
    held, default, disabled = _account_properties(s)
    _unless_there(
        s.if_not_exists,
        lambda: accounts.put_account(
            run.env,
            run.principal,
            kind,
            name,
            held,
            default,
            disabled,
            s.comment,
            Precondition(must_be_new=True),
        ),
    )
    return StatementResult(f"create_{s.noun}", object={"noun": s.noun, "name": name})


def create_token(run: Run, s: access.CreateToken) -> StatementResult:
    """CREATE API_TOKEN; the result holds the value, which is not shown again."""
    given = _token_properties(s)
    made, value = tokens.create_token(run.env, run.principal, single(s.name), comment=s.comment, **given)
    columns = text_columns("name", "account", "role", "scope", "expires_at", "value")
    expires = made.expires_at.isoformat() if made.expires_at else None
    row = [made.name, made.account, made.role, made.scope.value, expires, value]
    thing = {"noun": "api_token", "name": made.name}
    return StatementResult("create_api_token", object=thing, columns=columns, rows=[row])


def grant(run: Run, s: access.GrantPrivileges) -> StatementResult:
    """GRANT and REVOKE of privileges, and GRANT OWNERSHIP."""
    target, role = target_of(s.target, run.context), single(s.role)
    kind = "revoke" if s.revoke else "grant"
    thing = {"noun": "role", "name": role}
    if "ownership" in s.privileges:
        if len(s.privileges) > 1 or s.revoke or target.name is None or target.kind == ORGANIZATION:
            raise RequestError(
                "unsupported",
                "OWNERSHIP is given alone, of one object; the role that had it loses it.",
                position=s.position,
                hint="GRANT OWNERSHIP ON STORE k TO ROLE r;",
            )
        ownership.transfer(run.env, run.principal, target.kind, target.name, role)
        return StatementResult("grant_ownership", object=thing)
    wanted = [Grant(one, target, s.grant_option) for one in privileges_of(s.privileges, target, s)]
    change = grants.revoke if s.revoke else grants.grant
    change(run.env, run.principal, role, wanted)
    return StatementResult(f"{kind}_privileges", object=thing)


def grant_role(run: Run, s: access.GrantRole) -> StatementResult:
    """GRANT ROLE and REVOKE ROLE."""
    role, name = single(s.role), single(s.name)
    if not s.revoke:
        memberships.put_membership(run.env, run.principal, role, s.noun, name)
    elif memberships.has_role(run.env, run.principal, role, s.noun, name):
        memberships.delete_membership(run.env, run.principal, role, s.noun, name)
    verb = "revoke_role" if s.revoke else "grant_role"
    return StatementResult(verb, object={"noun": s.noun, "name": name})


def can_i(run: Run, s: access.CanI) -> StatementResult:
    """CAN I: one row, true or false; false also where nothing of that name is to be seen."""
    target = target_of(s.target, run.context)
    if target.name is None:
        raise RequestError("unsupported", "CAN I asks for one object.", position=s.position)
    (privilege,) = privileges_of((s.privilege,), target, s, single_one=True)
    found = grants.privileges_on(run.env, run.principal, target.kind, target.name)
    answer = "true" if found is not None and privilege in found else "false"
    return StatementResult("can_i", columns=text_columns("allowed"), rows=[[answer]])


def list_grants(run: Run, s: access.ListGrants) -> StatementResult:
    """LIST GRANTS TO ROLE, and ON an object."""
    env, who = run.env, run.principal
    if s.role is not None:
        found = [roles.get_role(env, who, single(s.role))]
        wanted = None
    else:
        assert s.target is not None  # noqa: S101 - one of both is read
        found = every(env, who, roles.list_roles)
        wanted = replace(target_of(s.target, run.context), entities=None)
    rows = [
        [role.name, one.privilege.value.upper(), str(one.on), str(one.grant_option).lower()]
        for role in found
        for one in role.grants
        if wanted is None or replace(one.on, entities=None) == wanted
    ]
    return StatementResult(
        "list_grants", columns=text_columns("role", "privilege", "on", "grant_option"), rows=rows
    )


def listed(env: Environment, who: Principal, s: ast.ListObjects) -> Table:
    """Rows of LIST ROLES, USERS, SERVICE_ACCOUNTS, API_TOKENS and INVITATIONS.

    Args:
        env: the environment.
        who: who asks.
        s: the statement.
    """
    if s.noun == "roles":
        found = every(env, who, roles.list_roles)
        columns = text_columns("name", "inherits", "grants", "comment", *META)
        return columns, [
            [r.name, ", ".join(r.inherits), _grants_of(r), r.comment, *meta_cells(r)] for r in found
        ]
    if s.noun == "invitations":
        return listed_invitations(env, who)
    if s.noun == "api_tokens":
        names = ("name", "account", "role", "scope", "expires_at", "last_used_at", "created_by")
        made = every(env, who, tokens.list_tokens)
        return text_columns(*names), [[_cell(getattr(one, name)) for name in names] for one in made]
    kind = AccountKind.USER if s.noun == "users" else AccountKind.SERVICE_ACCOUNT
    people = every(env, who, accounts.list_accounts, kind)
    columns = text_columns("name", "roles", "default_role", "disabled", "comment", *META)
    return columns, [
        [a.name, ", ".join(a.roles), a.default_role, str(a.disabled).lower(), a.comment, *meta_cells(a)]
        for a in people
    ]


def _grants_of(role: Role) -> str:
    """How many grants a role has; of a built-in one, which needs none, that it is one."""
    return BUILT_IN_ROLE if has_own_rights(role.name) else str(len(role.grants))


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _delete_account(kind: AccountKind) -> Callable[[Environment, Principal, str], None]:
    return lambda env, who, name: accounts.delete_account(env, who, kind, name)


DELETE: Mapping[str, Callable[[Environment, Principal, str], object]] = {
    "invitation": invitations.delete_invitation,
    "role": roles.delete_role,
    "user": _delete_account(AccountKind.USER),
    "service_account": _delete_account(AccountKind.SERVICE_ACCOUNT),
    "api_token": tokens.revoke_token,
}


def target_of(target: access.AccessTarget, context: Context) -> Target:
    """The target of a grant, with whole names.

    Args:
        target: as it was read.
        context: database, schema and store of the session.
    """
    if target.noun == ORGANIZATION:
        return Target(ORGANIZATION, "")
    if target.name is None:
        if target.within is None or target.of is None:
            return Target(target.noun, None, ORGANIZATION, "")
        parts = (
            (single(target.within),)
            if target.of == "database"
            else qualify_schema(target.within, None, context)
        )
        return Target(target.noun, None, target.of, ".".join(map(quote, parts)))
    pattern = str(target.entities.value) if target.entities is not None else None
    if target.noun == "relation":
        return Target("relation", str(qualify(target.name, context)))
    if target.noun == "schema":
        parts = qualify_schema(target.name, None, context)
        return Target("schema", ".".join(map(quote, parts)))
    return Target(target.noun, quote(single(target.name)), entities=pattern)


def privileges_of(
    words: tuple[str, ...], target: Target, s: ast.Statement, *, single_one: bool = False
) -> list[Privilege]:
    """The privileges that words mean on a target; ALL is every one but ownership.

    Args:
        words: as written, in lower case.
        target: what they are for.
        s: the statement, for the place of an error.
        single_one: whether ALL is refused.
    """
    known = [one for one in OBJECT_PRIVILEGES[target.kind] if one is not Privilege.OWNERSHIP or single_one]
    if words == ("all",) and not single_one:
        return known
    for word in words:
        if word not in {one.value for one in known}:
            raise RequestError(
                "validation",
                f"{word.upper()} is no privilege on {target.kind.replace('_', ' ')}s.",
                position=s.position,
                hint="Available: " + ", ".join(one.value.upper() for one in known) + ".",
            )
    return [Privilege(word) for word in words]


def _account_properties(s: access.CreateAccount) -> tuple[tuple[str, ...], str | None, bool]:
    reader = PropertyReader(s.properties, s.noun.replace("_", " "))
    for key in reader.given:
        if key not in _ACCOUNT_KEYS:
            reader.unknown(key, _ACCOUNT_KEYS)
    held = tuple(one.strip() for one in (reader.text("roles") or "").split(",") if one.strip())
    default, disabled = reader.text("default.role"), reader.flag("disabled", False)
    reader.faults.raise_if_any()
    return held, default, disabled


def _token_properties(s: access.CreateToken) -> dict[str, Any]:
    reader = PropertyReader(s.properties, "token")
    for key in reader.given:
        if key not in _TOKEN_KEYS:
            reader.unknown(key, _TOKEN_KEYS)
    scope = reader.choice("scope", tuple(Scope))
    days = reader.number("lifetime.days")
    if days is not None and days > tokens.MOST_DAYS:
        reader.wrong("lifetime.days", f"A token lasts at most {tokens.MOST_DAYS} days.")
    account, role = reader.text("account"), reader.text("role")
    reader.faults.raise_if_any()
    return {
        "account": account,
        "role": role,
        "scope": Scope(scope) if scope is not None else Scope.WRITE,
        "lifetime": timedelta(days=days or tokens.DEFAULT_DAYS),
    }


def _unless_there(optional: bool, create: Callable[[], object]) -> None:
    try:
        create()
    except CatalogError as error:
        if not (optional and error.code == "already-exists"):
            raise


HANDLERS: dict[type[ast.Statement], Callable[[Run, Any], StatementResult]] = {
    access.CreateRole: create_role,
    access.CreateAccount: create_account,
    access.CreateToken: create_token,
    access.InviteUser: invite_user,
    access.GrantPrivileges: grant,
    access.GrantRole: grant_role,
    access.CanI: can_i,
    access.ListGrants: list_grants,
}


def check(env: Environment, view: CatalogView, s: ast.Statement, context: Context) -> None:
    """The dry run: the statement runs on a catalog that is given up afterwards.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
        context: database, schema and store of the session.
    """
    handler = HANDLERS[type(s)]
    discarded(env, lambda inner: handler(Run(inner, env.caller, context, 0.0), s), view)


def check_drop(env: Environment, view: CatalogView, s: ast.Drop) -> None:
    """The dry run of DROP ROLE, USER, SERVICE_ACCOUNT or API_TOKEN.

    Args:
        env: the environment.
        view: the catalog, with what is assumed.
        s: the statement.
    """
    try:
        discarded(env, lambda inner: DELETE[s.noun](inner, env.caller, single(s.name)), view)
    except CatalogError as error:
        if not (s.if_exists and error.code == "not-found"):
            raise
