"""``/v1/roles``, ``/v1/users``, ``/v1/service-accounts``, ``/v1/tokens``, ``/v1/me``, ``/v1/audit-events``"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import Query, Response

from leatstream.errors import RequestError, no_provider, no_public_client, not_found
from leatstream.model.access import ORGANIZATION, AccountKind, AuditFilter
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING, problems
from leatstream.rest.deps import (
    Caller,
    Env,
    Moment,
    NamePart,
    NamePath,
    PageSize,
    PageToken,
    Pre,
    PreMatch,
    location,
    only,
)
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.access import (
    AuditEventList,
    AuditEventView,
    GrantsBody,
    Kind,
    OwnershipBody,
    PermissionsView,
    RoleBody,
    RoleList,
    RoleView,
)
from leatstream.rest.schemas.accounts import (
    AccountList,
    AccountView,
    MeView,
    NewTokenView,
    RotationBody,
    ServiceAccountBody,
    SignInView,
    TokenBody,
    TokenList,
    TokenView,
    UserBody,
)
from leatstream.services.environment import Environment, Precondition, Principal
from leatstream.services.nouns import accounts, audit, grants, ownership, roles, tokens

router = api_router(prefix="/v1", tags=["access"])


@router.get("/roles", responses=LISTING)
def list_roles(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> RoleList:
    """List roles by name, the built-in ones among them."""
    return RoleList.from_domain(roles.list_roles(env, caller, page_size, page_token, only(q)))


@router.get("/roles/{role:noun}", responses=READING)
def get_role(env: Env, caller: Caller, role: NamePath, response: Response) -> RoleView:
    """Show a role with its grants."""
    found = roles.get_role(env, caller, role)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return RoleView.from_domain(found)


@router.put("/roles/{role:noun}", responses={201: {"model": RoleView}, **WRITING})
def put_role(
    env: Env, caller: Caller, role: NamePath, body: RoleBody, pre: Pre, response: Response
) -> RoleView:
    """Create or replace a role. Changed grants count from the next request on, on every server."""
    grants = None if body.grants is None else [one.to_domain() for one in body.grants]
    stored = roles.put_role(env, caller, role, body.inherits, grants, body.comment, pre)
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("roles", role)
    return RoleView.from_domain(stored.item)


@router.delete("/roles/{role:noun}", status_code=204, responses=DELETING)
def delete_role(env: Env, caller: Caller, role: NamePath, pre: PreMatch) -> None:
    """Delete a role that nobody has and that owns nothing."""
    roles.delete_role(env, caller, role, pre)


@router.post("/roles/{role}:grant", responses=WRITING)
def grant_privileges(env: Env, caller: Caller, role: NamePath, body: GrantsBody) -> RoleView:
    """Add grants to a role."""
    given = [one.to_domain() for one in body.grants]
    return RoleView.from_domain(grants.grant(env, caller, role, given))


@router.post("/roles/{role}:revoke", responses=WRITING)
def revoke_privileges(env: Env, caller: Caller, role: NamePath, body: GrantsBody) -> RoleView:
    """Take grants from a role."""
    taken = [one.to_domain() for one in body.grants]
    return RoleView.from_domain(grants.revoke(env, caller, role, taken))


@router.post("/ownership", status_code=204, responses=WRITING)
def transfer_ownership(env: Env, caller: Caller, body: OwnershipBody) -> None:
    """Give an object to another role."""
    ownership.transfer(env, caller, body.on, body.name, body.role)


def _put_account(
    env: Environment,
    caller: Principal,
    kind: AccountKind,
    name: str,
    body: UserBody | ServiceAccountBody,
    pre: Precondition,
    response: Response,
) -> AccountView:
    stored = accounts.put_account(
        env,
        caller,
        kind,
        name,
        body.roles,
        body.default_role,
        bool(body.disabled),
        body.comment,
        pre,
    )
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        noun = "users" if kind is AccountKind.USER else "service-accounts"
        response.headers["Location"] = location(noun, name)
    return AccountView.from_domain(stored.item)


def _get_account(
    env: Environment, caller: Principal, kind: AccountKind, name: str, response: Response
) -> AccountView:
    found = accounts.get_account(env, caller, kind, name)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return AccountView.from_domain(found)


@router.get("/users", responses=LISTING)
def list_users(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> AccountList:
    """List users by name; without MANAGE_MEMBERS only the own one."""
    return AccountList.from_domain(
        accounts.list_accounts(env, caller, AccountKind.USER, page_size, page_token, only(q))
    )


@router.get("/users/{user:noun}", responses=READING)
def get_user(env: Env, caller: Caller, user: NamePath, response: Response) -> AccountView:
    """Show a user."""
    return _get_account(env, caller, AccountKind.USER, user, response)


@router.put("/users/{user:noun}", responses={201: {"model": AccountView}, **WRITING})
def put_user(
    env: Env, caller: Caller, user: NamePath, body: UserBody, pre: Pre, response: Response
) -> AccountView:
    """Create or replace a user."""
    return _put_account(env, caller, AccountKind.USER, user, body, pre, response)


@router.delete("/users/{user:noun}", status_code=204, responses=DELETING)
def delete_user(env: Env, caller: Caller, user: NamePath, pre: PreMatch) -> None:
    """Delete a user with its tokens; what its roles own stays."""
    accounts.delete_account(env, caller, AccountKind.USER, user, pre)


@router.get("/service-accounts", responses=LISTING)
def list_service_accounts(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> AccountList:
    """List service accounts by name; without MANAGE_MEMBERS only the own one."""
    return AccountList.from_domain(
        accounts.list_accounts(env, caller, AccountKind.SERVICE_ACCOUNT, page_size, page_token, only(q))
    )


@router.get("/service-accounts/{service_account:noun}", responses=READING)
def get_service_account(
    env: Env, caller: Caller, service_account: NamePath, response: Response
) -> AccountView:
    """Show a service account."""
    return _get_account(env, caller, AccountKind.SERVICE_ACCOUNT, service_account, response)


@router.put("/service-accounts/{service_account:noun}", responses={201: {"model": AccountView}, **WRITING})
def put_service_account(
    env: Env,
    caller: Caller,
    service_account: NamePath,
    body: ServiceAccountBody,
    pre: Pre,
    response: Response,
) -> AccountView:
    """Create or replace a service account."""
    return _put_account(env, caller, AccountKind.SERVICE_ACCOUNT, service_account, body, pre, response)


@router.delete("/service-accounts/{service_account:noun}", status_code=204, responses=DELETING)
def delete_service_account(env: Env, caller: Caller, service_account: NamePath, pre: PreMatch) -> None:
    """Delete a service account with its tokens; what its roles own stays."""
    accounts.delete_account(env, caller, AccountKind.SERVICE_ACCOUNT, service_account, pre)


@router.get("/tokens", responses=LISTING)
def list_tokens(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> TokenList:
    """List tokens by name, without their values; without MANAGE_MEMBERS only the own ones."""
    return TokenList.from_domain(tokens.list_tokens(env, caller, page_size, page_token, only(q)))


@router.get("/tokens/{token:noun}", responses=READING)
def get_token(env: Env, caller: Caller, token: NamePath) -> TokenView:
    """Show a token, without its values."""
    return TokenView.from_domain(tokens.get_token(env, caller, token))


# Before the one that follows: a name in quotes may end in a verb too.
@router.post("/tokens/{token}:rotate", responses=WRITING)
def rotate_token(env: Env, caller: Caller, token: NamePath, body: RotationBody) -> NewTokenView:
    """Give a token a new value; the old one is accepted for the time of grace."""
    grace = timedelta(minutes=body.grace_minutes)
    return NewTokenView.with_value(*tokens.rotate_token(env, caller, token, grace))


@router.post("/tokens/{token:noun}", status_code=201, responses=WRITING)
def create_token(
    env: Env, caller: Caller, token: NamePath, body: TokenBody, response: Response
) -> NewTokenView:
    """Make a token; the answer holds its value, which is not shown again."""
    made, value = tokens.create_token(
        env, caller, token, body.account, body.role, body.scope, body.lifetime(), body.comment
    )
    response.headers["Location"] = location("tokens", token)
    return NewTokenView.with_value(made, value)


@router.delete("/tokens/{token:noun}", status_code=204, responses=DELETING)
def revoke_token(env: Env, caller: Caller, token: NamePath) -> None:
    """Revoke a token: from now on no server accepts it."""
    tokens.revoke_token(env, caller, token)


@router.get("/sign-in", responses={404: READING[404]})
def get_sign_in(env: Env) -> SignInView:
    """Show the identity provider that `leat login` signs in with. Needs no token."""
    found = env.identities.for_command_line()
    if found is None:
        people = env.identities.for_people()
        raise no_provider() if people is None else no_public_client(people.issuer)
    return SignInView.from_domain(found)


@router.get("/me", responses=problems())
def get_me(env: Env, caller: Caller) -> MeView:
    """Show the caller: account, role, scope and privileges on the organization."""
    return MeView.from_domain(caller, accounts.roles_of(env, caller))


@router.get("/me/permissions", responses=READING)
def get_permissions(
    env: Env,
    caller: Caller,
    on: Annotated[Kind, Query(description="Kind of the object.")],
    name: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=800,
            pattern=r"^[^\x00-\x1f\x7f]+$",
            description="The object's name as SQL writes it; left out for the organization.",
        ),
    ] = None,
) -> PermissionsView:
    """Show what the caller may do with an object."""
    if (name is None) != (on == ORGANIZATION):
        raise RequestError("validation", "An object has a name; the organization has none.")
    found = grants.privileges_on(env, caller, on, name or "")
    if found is None:
        raise not_found(on, name or "")
    return PermissionsView(on=on, name=name, privileges=sorted(found))


def _text(description: str) -> Any:
    """A filter of the audit log."""
    return Query(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$", description=description)


@router.get("/audit-events", responses=LISTING)
def list_audit_events(
    env: Env,
    caller: Caller,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    account: Annotated[str | None, _text("Only events of this account.")] = None,
    operation: Annotated[
        str | None, _text("Only this operation: create, update, delete, rotate, or the method of a request.")
    ] = None,
    kind: Annotated[str | None, _text("Only objects of this kind, such as `query` or `sign_in`.")] = None,
    q: Annotated[str | None, _text("Part of the object's name or of the path, in any case.")] = None,
    outcome: Annotated[
        Literal["allowed", "denied"] | None, Query(description="Only events with this outcome.")
    ] = None,
    since: Annotated[
        Moment | None, Query(description="Only events of this time and later. Without an offset it is UTC.")
    ] = None,
    until: Annotated[
        Moment | None, Query(description="Only events before this time. Without an offset it is UTC.")
    ] = None,
    after: Annotated[
        int | None,
        Query(ge=0, lt=2**63, description="Only events behind the one with this number, oldest first."),
    ] = None,
) -> AuditEventList:
    """List the audit log, newest first.

    To follow it, ask for what is behind the last number that you have: `after`, which gives no page token.
    """
    wanted = AuditFilter(
        account=account, operation=operation, kind=kind, q=q, outcome=outcome, since=since, until=until
    )
    page = audit.list_events(env, caller, page_size, page_token, wanted, after)
    items = [AuditEventView.from_domain(one) for one in page.items]
    return AuditEventList(items=items, next_page_token=page.next_page_token)
