"""``/v1/roles/{role}/grants`` and ``/v1/roles/{role}/members``: one at a time"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from leatstream.model.access import Grant, Privilege
from leatstream.rest.answers import DELETING, READING, WRITING
from leatstream.rest.deps import Caller, Env, MustBeNew, NamePath
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.access import GrantBody, Kind
from leatstream.rest.schemas.grants import (
    MemberKind,
    MembershipBody,
    MembershipView,
    SingleGrantBody,
    SingleGrantView,
)
from leatstream.services.environment import Precondition
from leatstream.services.nouns import grants, memberships, roles

router = api_router(prefix="/v1", tags=["access"])

_Text = Annotated[str | None, Query(min_length=1, max_length=800, pattern=r"^[^\x00-\x1f\x7f]+$")]
_GRANT = "/roles/{role}/grants/{privilege}/{on}"
_MEMBER = "/roles/{role}/members/{member_kind}/{member}"


async def _grant(
    privilege: Annotated[Privilege, Path(description="What is granted.")],
    on: Annotated[Kind, Path(description="Kind of the object.")],
    name: Annotated[
        _Text, Query(description="The object's name as SQL writes it. Left out = all of the kind.")
    ] = None,
    in_database: Annotated[_Text, Query(description="Only those in this database.")] = None,
    in_schema: Annotated[_Text, Query(description="Only those in this schema: `database.schema`.")] = None,
    entities: Annotated[
        _Text, Query(description="Entities of the store: a name, or the start of names and `*`.")
    ] = None,
) -> Grant:
    try:
        return GrantBody(
            privilege=privilege,
            on=on,
            name=name,
            in_database=in_database,
            in_schema=in_schema,
            entities=entities,
            grant_option=None,
        ).to_domain()
    except ValidationError as error:
        faults = [{**fault, "loc": ("query", *fault["loc"])} for fault in error.errors(include_url=False)]
        raise RequestValidationError(faults) from error


Target = Annotated[Grant, Depends(_grant)]


@router.get(_GRANT, responses=READING)
def get_grant(env: Env, caller: Caller, role: NamePath, one: Target) -> SingleGrantView:
    """Show one grant of a role."""
    held = roles.get_role(env, caller, role).grants
    return SingleGrantView.from_domain(role, grants.find_grant(held, role, one))


@router.put(_GRANT, responses={201: {"model": SingleGrantView}, **WRITING})
def put_grant(
    env: Env,
    caller: Caller,
    role: NamePath,
    one: Target,
    body: SingleGrantBody,
    new: MustBeNew,
    response: Response,
) -> SingleGrantView:
    """Grant one privilege to a role, or change its grant option."""
    given = Grant(one.privilege, one.on, bool(body.grant_option))
    if grants.put_grant(env, caller, role, given, Precondition(must_be_new=new)):
        response.status_code = 201
    return SingleGrantView.from_domain(role, given)


@router.delete(_GRANT, status_code=204, responses=DELETING)
def delete_grant(env: Env, caller: Caller, role: NamePath, one: Target) -> None:
    """Revoke one privilege from a role."""
    grants.delete_grant(env, caller, role, one)


@router.get(_MEMBER, responses=READING)
def get_membership(
    env: Env, caller: Caller, role: NamePath, member_kind: MemberKind, member: NamePath
) -> MembershipView:
    """Show that a user, service account or role has a role of its own."""
    if not memberships.has_role(env, caller, role, member_kind, member):
        raise memberships.missing(role, member_kind, member)
    return MembershipView(role=role, member_kind=member_kind, member=member)


@router.put(_MEMBER, responses={201: {"model": MembershipView}, **WRITING})
def put_membership(
    env: Env,
    caller: Caller,
    role: NamePath,
    member_kind: MemberKind,
    member: NamePath,
    body: MembershipBody,
    new: MustBeNew,
    response: Response,
) -> MembershipView:
    """Give a role to a user, a service account or a role."""
    if memberships.put_membership(env, caller, role, member_kind, member, Precondition(must_be_new=new)):
        response.status_code = 201
    return MembershipView(role=role, member_kind=member_kind, member=member)


@router.delete(_MEMBER, status_code=204, responses=DELETING)
def delete_membership(
    env: Env, caller: Caller, role: NamePath, member_kind: MemberKind, member: NamePath
) -> None:
    """Take a role from a user, a service account or a role."""
    memberships.delete_membership(env, caller, role, member_kind, member)
