"""What all bodies and answers share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from leatstream.connectors.entity_settings import Name as Name
from leatstream.connectors.settings import NAME_PATTERN
from leatstream.connectors.settings import terraform as terraform
from leatstream.model.objects import Effective, Meta, Origin

# Exact names in bodies: any characters but control ones.
# A pattern: one line.
TEXT = NAME_PATTERN
Word = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
Comment = Annotated[str | None, Field(max_length=2000, description="Free text.")]
PropertyKey = Annotated[str, Field(min_length=1, max_length=255)]
PropertyValue = Annotated[str, Field(max_length=2000)]
Properties = Annotated[dict[PropertyKey, PropertyValue] | None, Field(max_length=100)]


OMIT = terraform(omit=True)


class Body(BaseModel):
    """What a client sends: nothing that is not declared, so that a misspelt member is never ignored."""

    model_config = ConfigDict(extra="forbid")


class OwnedBody(Body):
    """What a client sends of an object that belongs to a role."""

    owner: Name | None = Field(
        None,
        description="Role that owns the object. Left out = the present one, at first the caller's.",
        json_schema_extra=terraform(unmanaged=True),
    )


class View(BaseModel):
    """What the service answers."""

    model_config = ConfigDict(extra="ignore")


class ObjectView(View):
    """What every object of the catalog has."""

    id: str = Field(description="Stable id of the object.", examples=["db_0198a7c0f2b1a1b2c3d4e5f60718"])
    generation: int = Field(
        description="Counts changes of what was written, from 1.", json_schema_extra=terraform(volatile=True)
    )
    created_at: datetime = Field(description="When the object was made.", json_schema_extra=OMIT)
    updated_at: datetime = Field(description="When it was last changed.", json_schema_extra=OMIT)
    created_by: str = Field(description="Who made it.", json_schema_extra=OMIT)
    owner: str = Field(description="Role that owns the object.")


def meta_fields(meta: Meta) -> dict[str, Any]:
    """The members that every object has."""
    return {name: getattr(meta, name) for name in ObjectView.model_fields}


class EffectiveView(View):
    """A property's value in force and where it came from."""

    value: str | int | float | bool | None = Field(description="The value.")
    origin: Origin = Field(
        description="Which rule gave it: explicit, existing_entity, left_most_source, session or default."
    )
    source: str | None = Field(None, alias="from", description="The object the value was read from.")


def effective_view(effective: Mapping[str, Effective]) -> dict[str, EffectiveView]:
    """Properties in force, with origins."""
    return {name: EffectiveView.model_validate(one.as_json()) for name, one in effective.items()}


def property_text(value: Any) -> str:
    """A property's value as text, as it would be written in JSON bodies."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def properties_view(properties: Mapping[str, Any]) -> dict[str, str] | None:
    """Properties as written; None for none, as when they were left out."""
    return {name: property_text(value) for name, value in properties.items()} or None


class PositionView(View):
    """A stretch of SQL text: line and column from 1, offset from 0, in characters."""

    line: int
    column: int
    offset: int
    length: int = 1


class FaultView(View):
    """One thing that is wrong."""

    detail: str = Field(description="What is wrong, for people.")
    code: str | None = Field(None, description="The fault's stable code.")
    pointer: str | None = Field(None, description="JSON pointer into the body, such as #/columns/0/type.")
    position: PositionView | None = Field(None, description="Where in the SQL text.")
    hint: str | None = Field(None, description="What to do about it.")
    sqlstate: str | None = Field(None, description="Five characters.")


class Problem(View):
    """An error, as RFC 9457 says it."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="Where the code is explained.", examples=["/problems/not-found"])
    title: str = Field(description="The same for every error of this code.")
    status: int = Field(description="HTTP status.")
    code: str = Field(description="Stable code; never changes once released.", examples=["not-found"])
    detail: str = Field(description="What went wrong this time.")
    instance: str = Field(description="Path of the request.")
    request_id: str = Field(description="Also in the header X-Request-Id and in the server's log.")
    sqlstate: str | None = Field(None, description="Five characters.")
    errors: list[FaultView] = Field(description="Every fault that was found.")
