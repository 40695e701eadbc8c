"""Grants and memberships, each on its own."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import ConfigDict, Field

from leatstream.model.access import KINDS, ORGANIZATION, Grant, Privilege
from leatstream.rest.schemas.access import GrantBody, Kind
from leatstream.rest.schemas.base import Body, View, terraform

MemberKind = Literal["role", "user", "service_account"]
# Of a grant: what names its object beside the kind, as in the grants of a role.
TARGET = ("name", "in_database", "in_schema", "entities")


class SingleGrantBody(Body):
    """One grant to one role. What the role has besides it stays; use it with roles that set no `grants`."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_grant",
            path="/v1/roles/{role}/grants/{privilege:raw}/{on:raw}{?" + ",".join(TARGET) + "}",
            key=["role", "privilege", "on", *TARGET],
            path_attributes={
                "role": "Role that it is granted to.",
                "privilege": {"description": "What is granted.", "enum": [one.value for one in Privilege]},
                "on": {"description": "Kind of the object.", "enum": [ORGANIZATION, *KINDS]},
            },
            path_query={
                "name": "The object's name as SQL writes it, such as `demo.public.pageviews`. Left out = all "
                "of the kind, now and later.",
                "in_database": "Only those in this database.",
                "in_schema": "Only those in this schema: `database.schema`.",
                "entities": "Entities of the store that it is for: a name, or the start of names and `*`.",
            },
            excludes=[{"resource": "leatstream_role", "names": {"role": "name"}, "attribute": "grants"}],
            data_source=False,
            **{"import": "{role}/{privilege}/{on}{?" + ",".join(TARGET) + "}"},
        )
        | {"examples": [{"grant_option": False}]}
    )

    grant_option: bool | None = Field(None, description="Whether the role may grant it to others.")


class SingleGrantView(View):
    """One grant to one role."""

    role: str = Field(description="Role that it is granted to.")
    privilege: Privilege = Field(description="What is granted.")
    on: Kind = Field(description="Kind of the object.")
    name: str | None = Field(None, description="The object's name; null = all of the kind.")
    in_database: str | None = Field(None, description="Only those in this database.")
    in_schema: str | None = Field(None, description="Only those in this schema.")
    entities: str | None = Field(None, description="Entities of the store that it is for.")
    grant_option: bool | None = Field(None, description="Whether the role may grant it to others.")

    @classmethod
    def from_domain(cls, role: str, one: Grant) -> SingleGrantView:
        """The answer for a grant."""
        return cls(role=role, **GrantBody.from_domain(one).model_dump())


class MembershipBody(Body):
    """One role of one user, service account or role. What else the member has stays.

    Use it with members that set no `roles` (`inherits` of a role).
    """

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_role_membership",
            path="/v1/roles/{role}/members/{member_kind:raw}/{member}",
            key=["role", "member_kind", "member"],
            path_attributes={
                "role": "Role that the member gets.",
                "member_kind": {"description": "What the member is.", "enum": list(get_args(MemberKind))},
                "member": "Name of the member, exact.",
            },
            excludes=[
                {
                    "resource": f"leatstream_{kind}",
                    "names": {"member": "name"},
                    "where": {"member_kind": kind},
                    "attribute": attribute,
                }
                for kind, attribute in (("role", "inherits"), ("user", "roles"), ("service_account", "roles"))
            ],
            data_source=False,
            **{"import": "{role}/{member_kind}/{member}"},
        )
        | {"examples": [{}]}
    )


class MembershipView(View):
    """One role of one member."""

    role: str = Field(description="Role that the member has.")
    member_kind: MemberKind = Field(description="What the member is.")
    member: str = Field(description="Name of the member.")
