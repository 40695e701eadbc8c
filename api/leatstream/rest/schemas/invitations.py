"""Invitations: who may become a user."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import ConfigDict, Field

from leatstream.model.access import Invitation, Scope
from leatstream.rest.schemas.base import Body, Comment, Name, View
from leatstream.services.environment import Page
from leatstream.services.nouns.invitations import DAYS, MOST_DAYS


class InvitationBody(Body):
    """An invitation for the person with a mail address. No mail is sent: its link is yours to pass on."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"roles": ["reader"]}]})

    roles: Annotated[list[Name], Field(min_length=1, max_length=100)] = Field(
        description="Roles that the user may act in."
    )
    default_role: Name | None = Field(
        None, description="Role of tokens that name none; left out = the only one."
    )
    scope: Scope = Field(
        Scope.WRITE, description="How far the tokens that the invitation gives reach: read, write or admin."
    )
    lifetime_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = Field(
        DAYS, description="Days until the invitation ends."
    )
    comment: Comment = None

    def lifetime(self) -> timedelta:
        """How long it counts."""
        return timedelta(days=self.lifetime_days)


class InvitationView(View):
    """An invitation, without the value of its link."""

    mail: str = Field(description="Mail address, which becomes the user's name.")
    roles: list[str] = Field(description="Roles that the user may act in.")
    default_role: str = Field(description="Role of tokens that name none.")
    scope: Scope = Field(description="How far the tokens that it gives reach.")
    created_at: datetime = Field(description="When it was made.")
    created_by: str = Field(description="Who made it.")
    expires_at: datetime = Field(description="When it ends.")
    comment: Comment = None

    @classmethod
    def from_domain(cls, item: Invitation) -> InvitationView:
        """The answer for an invitation."""
        own = ("mail", "default_role", "scope", "expires_at", "comment")
        return cls(
            roles=list(item.roles),
            created_at=item.meta.created_at,
            created_by=item.meta.created_by,
            **{name: getattr(item, name) for name in own},
        )


class NewInvitationView(InvitationView):
    """An invitation with the value of its link, which is shown this once."""

    value: str = Field(description="Value of the link. It counts once, is not stored and not shown again.")
    link: str | None = Field(
        None, description="Address to pass on; null if LEATSTREAM_PUBLIC_URL is not set."
    )

    @classmethod
    def with_value(cls, item: Invitation, value: str, link: str | None) -> NewInvitationView:
        """The answer for a new invitation."""
        return cls(**InvitationView.from_domain(item).model_dump(), value=value, link=link)


class InvitationList(View):
    """One page of invitations."""

    items: list[InvitationView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Invitation]) -> InvitationList:
        """The answer for a page."""
        items = [InvitationView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)


class AcceptanceBody(Body):
    """The value of a link."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "leatinv_…"}]})

    value: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="Value of the invitation's link."
    )
