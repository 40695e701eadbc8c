"""Roles and their grants, users, service accounts, tokens, and the audit log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from leatstream.model.access import (
    NAME_PARTS,
    ORGANIZATION,
    Account,
    AuditEvent,
    Grant,
    Privilege,
    Role,
    Scope,
    Target,
)
from leatstream.model.names import quote, split
from leatstream.ports import SignIn
from leatstream.rest.schemas.base import Body, Comment, Name, ObjectView, View, meta_fields, terraform
from leatstream.services.environment import Page, Principal
from leatstream.services.nouns.tokens import DEFAULT_DAYS, MOST_DAYS, Token

_SqlName = Annotated[str, Field(min_length=1, max_length=800, pattern=r"^[^\x00-\x1f\x7f]+$")]
Kind = Literal[
    "organization",
    "database",
    "schema",
    "relation",
    "store",
    "secret",
    "schema_registry",
    "descriptor_source",
    "function_source",
    "function",
    "query",
    "application",
]


class GrantedTarget(Body):
    """The object of a grant, or all objects of a kind; the members that may follow the kind."""

    on: Kind = Field(description="Kind of the object.")
    name: _SqlName | None = Field(
        None,
        description="The object's name as SQL writes it, such as `demo.public.pageviews`. Left out = all of "
        "the kind, now and later.",
    )
    in_database: _SqlName | None = Field(None, description="Only those in this database.")
    in_schema: _SqlName | None = Field(None, description="Only those in this schema: `database.schema`.")
    entities: _SqlName | None = Field(
        None, description="Entities of the store that it is for: a name, or the start of names and `*`."
    )

    @model_validator(mode="after")
    def _make_sense(self) -> GrantedTarget:
        places = [one for one in (self.name, self.in_database, self.in_schema) if one is not None]
        if len(places) > 1 or (self.on == ORGANIZATION and places):
            raise PydanticCustomError("grant", "give at most one of name, in_database and in_schema")
        if self.entities is not None and (self.on != "store" or self.name is None):
            raise PydanticCustomError("grant", "a pattern of entities belongs to one store, by name")
        for text, parts in (
            (self.name, NAME_PARTS.get(self.on, 1)),
            (self.in_database, 1),
            (self.in_schema, 2),
        ):
            if text is not None and _canonical(text, parts) != text:
                raise PydanticCustomError(
                    "grant", "write the name as SQL shows it, of as many parts as its kind has"
                )
        return self

    def target(self) -> Target:
        """The target of a grant."""
        if self.on == ORGANIZATION:
            return Target(self.on, "")
        if self.name is not None:
            return Target(self.on, self.name, entities=self.entities)
        within = "schema" if self.in_schema else "database" if self.in_database else ORGANIZATION
        return Target(self.on, None, within, self.in_schema or self.in_database or "")


class GrantBody(GrantedTarget):
    """One privilege on one object, or on all objects of a kind, now and later."""

    privilege: Privilege = Field(description="What is granted.")
    grant_option: bool | None = Field(None, description="Whether the role may grant it to others.")

    def to_domain(self) -> Grant:
        """The grant."""
        return Grant(self.privilege, self.target(), bool(self.grant_option))

    @classmethod
    def from_domain(cls, one: Grant) -> GrantBody:
        """The grant as it is sent."""
        return cls(**_members_of(one))


def _members_of(one: Grant) -> dict[str, Any]:
    on = one.on
    return {
        "privilege": one.privilege,
        "on": on.kind,
        "name": None if on.kind == ORGANIZATION else on.name,
        "in_database": on.container if on.within == "database" else None,
        "in_schema": on.container if on.within == "schema" else None,
        "entities": on.entities,
        "grant_option": one.grant_option or None,
    }


def _canonical(text: str, parts: int) -> str | None:
    try:
        found = split(text)
    except ValueError:
        return None
    return ".".join(map(quote, found)) if len(found) == parts else None


def grants_view(grants: Iterable[Grant]) -> list[GrantBody]:
    """Grants as they are sent."""
    return [GrantBody.from_domain(one) for one in grants]


class RoleBody(Body):
    """A role: a named set of grants."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_role",
            path="/v1/roles/{name}",
            key=["name"],
            shared=["inherits", "grants"],
            path_attributes={"name": "Name of the role, exact."},
            **{"import": "{name}"},
        )
        | {
            "examples": [
                {"grants": [{"privilege": "select", "on": "relation", "name": "demo.public.pageviews"}]}
            ]
        }
    )

    comment: Comment = None
    inherits: Annotated[list[Name] | None, Field(max_length=100)] = Field(
        None,
        description="Roles whose grants it has too. Left out = those that it has stay.",
        json_schema_extra=terraform(unmanaged=True),
    )
    grants: Annotated[list[GrantBody] | None, Field(max_length=5000)] = Field(
        None,
        description="Its own grants. Left out = those that it has stay.",
        json_schema_extra=terraform(unmanaged=True),
    )


class RoleView(ObjectView):
    """A role."""

    name: str = Field(description="Name of the role, exact.")
    comment: Comment = None
    inherits: list[str] | None = Field(None, description="Roles whose grants it has too.")
    grants: list[GrantBody] | None = Field(None, description="Its own grants.")

    @classmethod
    def from_domain(cls, item: Role) -> RoleView:
        """The answer for a role."""
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            comment=item.comment,
            inherits=list(item.inherits) or None,
            grants=grants_view(item.grants) or None,
        )


class RoleList(View):
    """One page of roles."""

    items: list[RoleView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Role]) -> RoleList:
        """The answer for a page."""
        return cls(
            items=[RoleView.from_domain(item) for item in page.items], next_page_token=page.next_page_token
        )


class GrantsBody(Body):
    """Grants to add to a role, or to take from it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"grants": [{"privilege": "usage", "on": "store", "name": "k"}]}]}
    )

    grants: Annotated[list[GrantBody], Field(min_length=1, max_length=1000)] = Field(description="Grants.")


class OwnershipBody(Body):
    """An object and the role that it is given to."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"on": "relation", "name": "demo.public.pageviews", "role": "web"}]}
    )

    on: Kind = Field(description="Kind of the object.")
    name: _SqlName = Field(description="The object's name as SQL writes it.")
    role: Name = Field(description="The role that owns it from now on.")


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


class PermissionsView(View):
    """What the caller may do with one object."""

    on: Kind = Field(description="Kind of the object.")
    name: str | None = Field(None, description="Its name.")
    privileges: list[Privilege] = Field(description="Privileges that the caller has on it.")


class AuditEventView(View):
    """A change of the catalog, or an attempt that was refused."""

    number: int = Field(description="Place in the log, from 1.")
    at: datetime = Field(description="When.")
    principal: str = Field(description="Name of the account.")
    role: str = Field(description="Role that it acted in.")
    operation: str = Field(description="create, update, delete, rotate; of a refused request its method.")
    kind: str = Field(description="Kind of the object; request for one that was refused.")
    name: str = Field(description="Name of the object, or the path.")
    outcome: str = Field(description="allowed or denied.")
    token: str | None = Field(None, description="Id of the token.")
    request: str | None = Field(None, description="Id of the request.")
    address: str | None = Field(None, description="Address of the client.")
    code: str | None = Field(None, description="Code of the refusal.")
    hash: str = Field(description="SHA-256 over the hash of the event before and this one.")

    @classmethod
    def from_domain(cls, item: AuditEvent) -> AuditEventView:
        """The answer for an event."""
        return cls(**{name: getattr(item, name) for name in AuditEventView.model_fields})


class AuditEventList(View):
    """One page of the audit log, newest first."""

    items: list[AuditEventView]
    next_page_token: str | None = None


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
