"""Values that several types share: JSON, large numbers, properties, positions, pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, NewType, TypeVar

import msgspec
import strawberry
from graphql import GraphQLError
from strawberry.scalars import JSON as JSON
from strawberry.types.scalar import ScalarDefinition

from leatstream.errors import Fault
from leatstream.errors import Position as SqlPosition
from leatstream.model.objects import Effective, Meta, Origin
from leatstream.rest.schemas.base import property_text

T = TypeVar("T")
Long = NewType("Long", int)


def _whole(value: Any) -> int:
    """A whole number as clients write it: those of JavaScript write large ones as text."""
    if type(value) is int or (isinstance(value, str) and value.isdecimal()):
        return int(value)
    raise GraphQLError(f"{value!r} is not a whole number.")


LONG: ScalarDefinition = strawberry.scalar(
    name="Long", description="A whole number of 64 bits.", serialize=int, parse_value=_whole
)
strawberry.enum(Origin, description="Which rule gave a property its value.")


def raw_json(text: str) -> JSON:
    """JSON text as it is: to read and write it again might change its numbers."""
    return JSON(msgspec.Raw(text.encode("utf-8", "replace")))


@strawberry.interface(description="What every object of the catalog has.")
class CatalogObject:
    """What every object of the catalog has."""

    id: strawberry.ID
    generation: int = strawberry.field(description="Counts changes of what was written, from 1.")
    created_at: datetime
    updated_at: datetime
    created_by: str
    owner: str = strawberry.field(description="Role that owns the object.")


def meta_fields(meta: Meta) -> dict[str, Any]:
    """The fields of ``CatalogObject``."""
    return {name: getattr(meta, name) for name in Meta.__dataclass_fields__}


@strawberry.type(description="A property in force, and where its value came from.")
class Property:
    """A property in force, and where its value came from."""

    name: str
    value: str | None
    origin: Origin
    from_: str | None = strawberry.field(name="from", description="The object the value was read from.")


def properties_of(effective: Mapping[str, Effective | Mapping[str, Any]]) -> list[Property]:
    """Properties in force, by name."""
    found = ((n, e if isinstance(e, Effective) else Effective.from_json(e)) for n, e in effective.items())
    return [Property(name=n, value=_text(e.value), origin=e.origin, from_=e.source) for n, e in sorted(found)]


def _text(value: Any) -> str | None:
    return None if value is None else property_text(value)


@strawberry.type(description="A name and its value.")
class NamedValue:
    """A name and its value."""

    name: str
    value: str | None


def named_values(values: Mapping[str, Any]) -> list[NamedValue]:
    """A mapping as a list, by name."""
    return [NamedValue(name=name, value=_text(value)) for name, value in sorted(values.items())]


@strawberry.type(description="A stretch of SQL text: line and column from 1, offset from 0, in characters.")
class Position:
    """A stretch of SQL text."""

    line: int
    column: int
    offset: int
    length: int


def position_of(place: SqlPosition | Mapping[str, Any] | None) -> Position | None:
    """A position as clients see it."""
    if place is None:
        return None
    given = place if isinstance(place, Mapping) else {n: getattr(place, n) for n in _PLACE}
    return Position(**{name: given.get(name, 1) for name in _PLACE})


_PLACE = ("line", "column", "offset", "length")


@strawberry.type(description="One thing that is wrong.")
class Problem:
    """One thing that is wrong."""

    code: str | None = strawberry.field(description="Stable code, such as unknown-column.")
    detail: str
    hint: str | None
    sqlstate: str | None
    position: Position | None = strawberry.field(description="Where in the SQL text.")


def problem_of(fault: Fault | Mapping[str, Any]) -> Problem:
    """A fault as clients see it."""
    given: dict[str, Any] = {
        name: fault.get(name) if isinstance(fault, Mapping) else getattr(fault, name)
        for name in ("code", "detail", "hint", "sqlstate", "position")
    }
    given["position"] = position_of(given["position"])
    return Problem(**given)


@strawberry.type(description="One page of a list.")
class Page(Generic[T]):
    """One page of a list."""

    items: list[T]
    next_page_token: str | None = strawberry.field(description="Null on the last page.")


def page_of(items: Iterable[T], token: str | None) -> Page[T]:
    """A page of converted items."""
    return Page(items=list(items), next_page_token=token)
