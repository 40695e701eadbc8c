"""Users, service accounts, their tokens, the caller, and where people sign in."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from leatstream.model.access import ORGANIZATION, Account, Privilege, Scope
from leatstream.ports import SignIn
from leatstream.rest.schemas.base import Body, Comment, Name, ObjectView, View, meta_fields, terraform
from leatstream.services.environment import Page, Principal
from leatstream.services.nouns.tokens import DEFAULT_DAYS, MOST_DAYS, Token


def _account_terraform(resource: str, path: str, what: str) -> dict[str, Any]:
    return terraform(
        resource=resource,
        path=path,
        key=["name"],
        path_attributes={"name": f"Name of the {what}, exact."},
        shared=["roles"],
        **{"import": "{name}"},
    )


class _AccountFields(Body):
    comment: Comment = None
    roles: Annotated[list[Name] | None, Field(max_length=100)] = Field(
        None,
        description="Roles that it may act in. Left out = those that it has stay.",
        json_schema_extra=terraform(unmanaged=True),
    )
    default_role: Name | None = Field(
        None, description="Role of tokens that name none; left out = the only one."
    )
    disabled: bool | None = Field(None, description="Whether its tokens are refused.")


class UserBody(_AccountFields):
    """A user: a person who may have tokens."""

    model_config = ConfigDict(
        json_schema_extra=_account_terraform("leatstream_user", "/v1/users/{name}", "user")
        | {"examples": [{"roles": ["reader"]}]}
    )


class ServiceAccountBody(_AccountFields):
    """A service account: a program that may have tokens."""

    model_config = ConfigDict(
        json_schema_extra=_account_terraform(
            "leatstream_service_account", "/v1/service-accounts/{name}", "service account"
        )
        | {"examples": [{"roles": ["reader"], "comment": "Plans pull requests"}]}
    )


class AccountView(ObjectView):
    """A user or a service account."""

    name: str = Field(description="Name, exact.")
    comment: Comment = None
    roles: list[str] | None = Field(None, description="Roles that it may act in.")
    default_role: str | None = Field(None, description="Role of tokens that name none.")
    disabled: bool | None = Field(None, description="Whether its tokens are refused.")

    @classmethod
    def from_domain(cls, item: Account) -> AccountView:
        """The answer for an account."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            comment=item.comment,
            roles=list(item.roles) or None,
            default_role=item.default_role,
            disabled=item.disabled or None,
        )


class AccountList(View):
    """One page of users or service accounts."""

    items: list[AccountView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Account]) -> AccountList:
        """The answer for a page."""
        return cls(
            items=[AccountView.from_domain(item) for item in page.items], next_page_token=page.next_page_token
        )


class TokenBody(Body):
    """An API token. Its value is made with it, and again when it is rotated; it is not shown otherwise."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_token",
            path="/v1/tokens/{name}",
            key=["name"],
            path_attributes={"name": "Name of the token, exact."},
            create="POST",
            rotates=True,
            ephemeral={
                "defaults": {"lifetime_days": 1},
                "descriptions": {"value": "The bearer token. It is in no plan and no state."},
                "description": "An API token that exists while Terraform runs. It is made when Terraform "
                "needs it, and deleted at the end of the command.",
            },
            attributes={
                "comment": {"replace": True},
                "value": {
                    "sensitive": True,
                    "volatile": True,
                    "kept": True,
                    "description": "The bearer token. The service shows it once, so the state keeps it: "
                    "protect the state. Null after an import, until the next rotation.",
                },
                "expires_at": {"volatile": True},
                **{name: {"omit": True} for name in ("created_at", "created_by", "last_used_at", "values")},
            },
            data_source=False,
            **{"import": "{name}"},
        )
        | {"examples": [{"account": "ci", "scope": "read", "lifetime_days": 30}]}
    )

    account: Name | None = Field(
        None,
        description="Whose token it is; left out = the caller's own.",
        json_schema_extra=terraform(replace=True, mode="optional_computed"),
    )
    role: Name | None = Field(
        None,
        description="Role that it acts in; left out = the account's default role.",
        json_schema_extra=terraform(replace=True, mode="optional_computed"),
    )
    scope: Scope = Field(
        Scope.WRITE,
        description="How far it reaches: read, write, or admin for access itself.",
        json_schema_extra=terraform(replace=True, name="token_scope"),
    )
    lifetime_days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = Field(
        DEFAULT_DAYS,
        description="Days until it ends; null = it never does, which needs MANAGE_MEMBERS.",
        json_schema_extra=terraform(
            replace=True,
            provider_only=True,
            default=False,
            description=f"Days until a value ends; default {DEFAULT_DAYS}. A rotation begins them again.",
        ),
    )
    comment: Comment = None

    def lifetime(self) -> timedelta | None:
        """How long it is accepted."""
        return None if self.lifetime_days is None else timedelta(days=self.lifetime_days)


class RotationBody(Body):
    """How a token is rotated."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_minutes": 60}]})

    grace_minutes: Annotated[int, Field(ge=0, le=10080)] = Field(
        1440, description="Minutes that the old value is still accepted."
    )


class TokenView(View):
    """A token, without its values."""

    name: str = Field(description="Name of the token.")
    account: str = Field(description="Whose token it is.")
    role: str = Field(description="Role that it acts in.")
    scope: Scope = Field(description="How far it reaches.")
    created_at: datetime = Field(description="When it was made.")
    created_by: str = Field(description="Who made it.")
    expires_at: datetime | None = Field(None, description="When its newest value ends; null = never.")
    last_used_at: datetime | None = Field(None, description="When it was last used, to the hour.")
    values: int = Field(description="How many values are accepted now: two while it is rotated.")
    comment: Comment = None

    @classmethod
    def from_domain(cls, item: Token) -> TokenView:
        """The answer for a token."""
        return cls(**{name: getattr(item, name) for name in TokenView.model_fields})


class NewTokenView(TokenView):
    """A token with its new value, which is shown this once."""

    value: str = Field(description="The bearer token. It is not stored and not shown again.")

    @classmethod
    def with_value(cls, item: Token, value: str) -> NewTokenView:
        """The answer for a new value."""
        return cls(**TokenView.from_domain(item).model_dump(), value=value)


class TokenList(View):
    """One page of tokens."""

    items: list[TokenView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Token]) -> TokenList:
        """The answer for a page."""
        return cls(
            items=[TokenView.from_domain(item) for item in page.items], next_page_token=page.next_page_token
        )


class MeView(View):
    """The caller, as the server sees it."""

    name: str = Field(description="Name of the account.")
    role: str = Field(description="Role that the token acts in.")
    scope: Scope = Field(description="How far the token reaches.")
    effective_roles: list[str] = Field(description="The role, and all that it includes or inherits.")
    organization_privileges: list[Privilege] = Field(description="Privileges on the organization.")
    roles: list[str] = Field(description="Roles that the account may act in.")

    @classmethod
    def from_domain(cls, who: Principal, roles: Iterable[str]) -> MeView:
        """The answer for a caller."""
        rights = who.rights
        return cls(
            name=who.name,
            role=who.role,
            scope=rights.scope,
            effective_roles=sorted(rights.roles),
            organization_privileges=sorted(rights.on(ORGANIZATION, "")),
            roles=sorted(roles),
        )


class SignInView(View):
    """Where people sign in, for a public client with PKCE or a device code."""

    issuer: str = Field(description="URL of the identity provider.")
    client_id: str = Field(description="Id of the command line at the provider.")
    audience: str = Field(description="Audience that a token for this server has.")
    scopes: list[str] = Field(description="Scopes to ask for.")

    @classmethod
    def from_domain(cls, found: SignIn) -> SignInView:
        """The answer."""
        return cls(
            issuer=found.issuer,
            client_id=found.client_id,
            audience=found.audience,
            scopes=list(found.scopes),
        )


class SessionView(View):
    """How a browser is signed in to the console, and where people can do that."""

    issuer: str | None = Field(None, description="Identity provider of the console; null if there is none.")
    account: str | None = Field(None, description="Who is signed in; null if nobody is.")
    role: str | None = Field(None, description="Role that the session acts in.")
