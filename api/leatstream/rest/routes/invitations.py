"""``/v1/invitations``"""

from __future__ import annotations

from functools import partial

from anyio import to_thread
from fastapi import Request, Response

from leatstream.rest.answers import DELETING, LISTING, READING, WRITING, problems
from leatstream.rest.deps import Caller, Env, NamePart, NamePath, PageSize, PageToken, location, only
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.accounts import NewTokenView
from leatstream.rest.schemas.invitations import (
    AcceptanceBody,
    InvitationBody,
    InvitationList,
    InvitationView,
    NewInvitationView,
)
from leatstream.services.environment import Principal
from leatstream.services.nouns import invitations

router = api_router(prefix="/v1", tags=["access"])


@router.get("/invitations", responses=LISTING)
def list_invitations(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> InvitationList:
    """List invitations by mail address, without values; without MANAGE_MEMBERS none."""
    return InvitationList.from_domain(
        invitations.list_invitations(env, caller, page_size, page_token, only(q))
    )


@router.get("/invitations/{invitation:noun}", responses=READING)
def get_invitation(env: Env, caller: Caller, invitation: NamePath) -> InvitationView:
    """Show an invitation, without its value."""
    return InvitationView.from_domain(invitations.get_invitation(env, caller, invitation))


@router.post("/invitations:accept", status_code=201, responses=problems(400, 413))
async def accept_invitation(env: Env, body: AcceptanceBody, request: Request) -> NewTokenView:
    """Take an invitation: makes the user and the first token, whose value is shown once. Needs no token."""
    address = request.client.host if request.client else None
    who = Principal("", "", request=request.scope["leatstream.request_id"], address=address)
    accept = partial(invitations.accept_invitation, env, body.value, who)
    # Anybody can send these requests.
    made, value = await to_thread.run_sync(accept, limiter=request.app.state.sign_in_threads)
    return NewTokenView.with_value(made, value)


@router.post("/invitations/{invitation:noun}", status_code=201, responses=WRITING)
def create_invitation(
    env: Env, caller: Caller, invitation: NamePath, body: InvitationBody, response: Response
) -> NewInvitationView:
    """Invite a person by mail address; the answer holds the link's value, which is not shown again."""
    made, value = invitations.create_invitation(
        env, caller, invitation, body.roles, body.default_role, body.scope, body.lifetime(), body.comment
    )
    response.headers["Location"] = location("invitations", made.mail)
    return NewInvitationView.with_value(made, value, invitations.link_of(env, value))


@router.delete("/invitations/{invitation:noun}", status_code=204, responses=DELETING)
def delete_invitation(env: Env, caller: Caller, invitation: NamePath) -> None:
    """Withdraw an invitation: from now on no server accepts its link."""
    invitations.delete_invitation(env, caller, invitation)
