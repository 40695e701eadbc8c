"""What REST takes and shows of each store kind, derived from the kind's own models.

A kind's settings and the properties of its entities are pydantic models in ``connectors/<kind>/``. Settings
become a body, which takes secrets by value or by the name of a stored secret, and a view, which shows none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, create_model
from pydantic.fields import FieldInfo

from leatstream.connectors.base import Connector
from leatstream.connectors.registry import connector_classes
from leatstream.connectors.settings import Api, Generated, Secret, StoreSettings, bare_type, mark, part_of
from leatstream.rest.schemas.base import Name, terraform

M = TypeVar("M", bound=BaseModel)
_STRICT: dict[Any, Any] = {bool: StrictBool, int: StrictInt}
_STAYS = "; left out = the stored one stays."


def with_members(members: dict[str, Any]) -> Callable[[type[M]], type[M]]:
    """Give a model more members, after its own.

    Args:
        members: name to type and pydantic field.
    """

    def extend(model: type[M]) -> type[M]:
        name, place, text = model.__name__, model.__module__, model.__doc__
        return create_model(name, __base__=model, __module__=place, __doc__=text, **members)

    return extend


def with_kinds(field: Callable[[type[Connector]], tuple[Any, Any] | None]) -> Callable[[type[M]], type[M]]:
    """Give a model a member for each kind.

    Args:
        field: type and pydantic field of a kind's member; None for a kind that has none.
    """
    members = {kind: field(connector) for kind, connector in connector_classes().items()}
    return with_members({kind: member for kind, member in members.items() if member is not None})


def effective_members() -> dict[str, Any]:
    """Members of what an entity has: the entity properties of every kind."""
    properties = [one for connector in connector_classes().values() for one in connector.entity_properties]
    return {one.short: (int | None, Field(None, description=one.description)) for one in properties}


def store_body(connector: type[Connector]) -> tuple[Any, Any]:
    """Member of a store's body."""
    body = settings_body(connector.Config)
    return body | None, Field(None, description=body.__doc__, json_schema_extra=terraform(mode="optional"))


def store_view(connector: type[Connector]) -> tuple[Any, Any]:
    """Member of a store's view."""
    view = settings_view(connector.Config)
    return view | None, Field(None, description=view.__doc__)


def entity_member(connector: type[Connector]) -> tuple[Any, Any] | None:
    """Member of an entity's body and view."""
    model = connector.EntityConfig
    return None if model is None else (model | None, Field(None, description=model.__doc__))


@cache
def settings_body(model: type[StoreSettings]) -> type[BaseModel]:
    """The body of a kind's settings: as they are written, secrets included."""
    return _derived(model, "Body", ConfigDict(extra="forbid"), settings_body, _secret_members)


@cache
def settings_view(model: type[StoreSettings]) -> type[BaseModel]:
    """The view of a kind's settings: without secrets, but with the names of those that have one."""
    return _derived(model, "View", ConfigDict(extra="ignore"), settings_view, _secret_names)


def _derived(
    model: type[StoreSettings],
    suffix: str,
    config: ConfigDict,
    part: Callable[[type[StoreSettings]], type[BaseModel]],
    secret: Callable[[str, FieldInfo, Secret], dict[str, Any]],
) -> type[BaseModel]:
    """Plain settings, then secrets, then objects of settings."""
    plain: dict[str, Any] = {}
    secrets: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        inner, concealed = part_of(field), mark(field, Secret)
        if inner is not None:
            parts[name] = (part(inner) | None, Field(None, description=field.description))
        elif concealed is not None:
            secrets |= secret(name, field, concealed)
        else:
            plain[name] = _member(field, required=field.is_required())
    members = plain | secrets | parts
    base = create_model(f"{model.schema_name}{suffix}", __doc__=model.__doc__, __config__=config, **members)
    return cast("type[BaseModel]", base)


def _member(field: FieldInfo, *, required: bool) -> tuple[Any, Any]:
    """Type and field of a setting; what has a default may be left out, and stays out of what is stored."""
    kind = bare_type(field)
    api = mark(field, Api)
    bounds = {
        k: getattr(one, k)
        for one in field.metadata
        for k in ("ge", "le", "min_length", "max_length")
        if hasattr(one, k)
    }
    bounds |= api.bounds if api else {}
    bounded: Any = _STRICT.get(kind, kind)
    if bounds:
        bounded = Annotated[bounded, Field(**bounds)]
    if required:
        return bounded, Field(description=field.description, examples=field.examples)
    hints = terraform(unmanaged=True) if mark(field, Generated) else None
    return bounded | None, Field(
        None, description=field.description, examples=field.examples, json_schema_extra=hints
    )


def _secret_members(name: str, field: FieldInfo, secret: Secret) -> dict[str, Any]:
    api = mark(field, Api)
    value = Annotated[str, Field(**(api.bounds if api else {}))]
    given = Field(None, description=f"{field.description}{_STAYS}", json_schema_extra={"writeOnly": True})
    named = Field(None, description=f"Name of the secret that holds {secret.what}.")
    return {name: (value | None, given), f"{name}_secret": (Name | None, named)}


def _secret_names(name: str, _: FieldInfo, secret: Secret) -> dict[str, Any]:
    named = Field(None, description=f"Name of the secret that holds {secret.what}.")
    return {f"{name}_secret": (str | None, named)}
