"""Roles and their grants, ownership, and the audit log."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from leatstream.model.access import (
    NAME_PARTS,
    ORGANIZATION,
    AuditEvent,
    Grant,
    Privilege,
    Role,
    Target,
)
from leatstream.model.names import quote, split
from leatstream.rest.schemas.base import Body, Comment, Name, ObjectView, View, meta_fields, terraform
from leatstream.services.environment import Page

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


class PermissionsView(View):
    """What the caller may do with one object."""

    on: Kind = Field(description="Kind of the object.")
    name: str | None = Field(None, description="Its name.")
    privileges: list[Privilege] = Field(description="Privileges that the caller has on it.")


class AuditEventView(View):
    """A change of the catalog, or an attempt that was refused."""

    number: int = Field(description="Place in the log, from 1.")
    at: datetime = Field(description="When.")
    principal: str = Field(description="Name of the account; empty if nobody was signed in.")
    role: str = Field(description="Role that it acted in; empty if nobody was signed in.")
    operation: str = Field(description="create, update, delete, rotate; of a refused request its method.")
    kind: str = Field(
        description="Kind of the object; of a refused request `request`, of a refused sign-in `sign_in`."
    )
    name: str = Field(description="Name of the object, or the path.")
    outcome: str = Field(description="allowed or denied.")
    token: str | None = Field(None, description="Id of the token.")
    request: str | None = Field(None, description="Id of the request.")
    address: str | None = Field(None, description="Address of the client.")
    code: str | None = Field(None, description="Code of the refusal.")
    detail: str | None = Field(None, description="Why a sign-in was refused.")
    count: int | None = Field(None, description="How many refused sign-ins the event stands for; null = one.")
    hash: str = Field(description="SHA-256 over the hash of the event before and this one.")

    @classmethod
    def from_domain(cls, item: AuditEvent) -> AuditEventView:
        """The answer for an event."""
        return cls(**{name: getattr(item, name) for name in AuditEventView.model_fields})


class AuditEventList(View):
    """One page of the audit log, newest first."""

    items: list[AuditEventView]
    next_page_token: str | None = None
