"""What a kind's settings say of themselves: marks on the fields of one pydantic model.

A kind has one settings model, a ``StoreSettings`` in ``connectors/<kind>/settings.py``. The connector
validates a store with it. REST derives bodies and views from it; Terraform and the constructs follow. SQL
derives the properties of ``CREATE STORE … WITH``, and the catalog which settings are secrets. Marks stand in
``Annotated``; validation ignores them.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

T = TypeVar("T")

NAME_PATTERN = r"^[^\x00-\x1f\x7f]+$"
"""One line without control characters."""


def terraform(**hints: Any) -> dict[str, Any]:
    """Hints for the Terraform provider, as ``json_schema_extra`` (provider-schema/README.md)."""
    return {"x-terraform": hints}


@dataclass(frozen=True, slots=True)
class Sql:
    """The property of ``CREATE STORE … WITH`` that holds a setting.

    Attributes:
        key: the property, such as ``kafka.sasl.username``; None where ``sql_keys`` of the model names it.
        words: SQL's words for the values of a setting that is a choice; without it they are the same.
        pem: whether the value is a PEM text.
        example: what to write, for a setting without which there is no store.
    """

    key: str | None = None
    words: Mapping[str, str] | None = None
    pem: bool = False
    example: str | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret: stored encrypted, never shown, never in a Terraform state.

    Attributes:
        what: what it is, for descriptions, such as ``the password``.
        of: the setting it belongs to; the stored secret is deleted with it.
    """

    what: str
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Needs:
    """The other setting of the same model without which this one has no meaning."""

    other: str


class Receives:
    """This setting decides to whom secrets are sent, or how safely.

    A stored secret is not sent along when it changes; the caller has to give it again.
    """


class Connects(Receives):
    """This setting names hosts that receive secrets: a host, ``host:port`` or a URL, or several with commas.

    The server connects only where it is allowed to (``destinations``).
    """


class Generated:
    """The server generates this setting where the model's ``generates`` says so; else users may give it."""


class Api:
    """Bounds of the setting in REST's JSON schema, beside the model's own validation."""

    def __init__(self, **bounds: Any) -> None:
        """Take pydantic's words: ``pattern``, ``min_length``, ``max_length``, …"""
        self.bounds = bounds


class StoreSettings(BaseModel):
    """Settings of a store, or a part of them.

    Attributes:
        sql_keys: setting to SQL property, of settings that several kinds share under different properties.
        schema_name: what REST's JSON schemas call it, such as ``Kafka``: ``KafkaBody`` and ``KafkaView``.
        example: settings of a whole store, for the API's documentation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sql_keys: ClassVar[Mapping[str, str]] = {}
    schema_name: ClassVar[str]
    example: ClassVar[Mapping[str, Any]]

    @classmethod
    def takes_machine_credentials(cls, config: Mapping[str, Any]) -> bool:
        """Whether settings like these use credentials of the server's machine, for lack of their own."""
        return any(part.takes_machine_credentials(config[name]) for name, part in parts_in(cls, config))

    @classmethod
    def generates(cls, config: Mapping[str, Any]) -> bool:
        """Whether the server generates the settings that are marked so, beside others like these."""
        return False


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a model or of a part of it."""

    path: tuple[str, ...]
    field: FieldInfo
    key: str | None

    @property
    def dotted(self) -> str:
        """The path as one text, such as ``sasl.password``."""
        return ".".join(self.path)

    @property
    def value_type(self) -> Any:
        """The type of its value."""
        return bare_type(self.field)

    @property
    def choices(self) -> Mapping[str, str] | None:
        """SQL's words to the values, of a choice."""
        if get_origin(self.value_type) is not Literal:
            return None
        sql = mark(self.field, Sql)
        return (sql.words if sql else None) or {str(value): str(value) for value in get_args(self.value_type)}

    def find(self, kind: type[T]) -> T | None:
        """The mark of a kind."""
        return mark(self.field, kind)


def mark(field: FieldInfo, kind: type[T]) -> T | None:
    """The mark of a kind on a field."""
    return next((one for one in field.metadata if isinstance(one, kind)), None)


def bare_type(field: FieldInfo) -> Any:
    """The type of a field's value where there is one."""
    if get_origin(field.annotation) not in (Union, types.UnionType):
        return field.annotation
    (only,) = (one for one in get_args(field.annotation) if one is not type(None))
    return get_args(only)[0] if hasattr(only, "__metadata__") else only


def generated_in(model: type[StoreSettings], config: Mapping[str, Any]) -> list[str]:
    """The settings of one object that the server generates."""
    if not model.generates(config):
        return []
    return [name for name, field in model.model_fields.items() if mark(field, Generated)]


def parts_in(
    model: type[StoreSettings], config: Mapping[str, Any]
) -> Iterator[tuple[str, type[StoreSettings]]]:
    """The objects of settings in a store's settings, by name."""
    for name, field in model.model_fields.items():
        part = part_of(field)
        if part is not None and isinstance(config.get(name), Mapping):
            yield name, part


def part_of(field: FieldInfo) -> type[StoreSettings] | None:
    """The model of a field that is an object of settings."""
    found = bare_type(field)
    return found if isinstance(found, type) and issubclass(found, StoreSettings) else None


def settings_of(model: type[BaseModel]) -> tuple[Setting, ...]:
    """Every setting that is not an object itself, in order."""
    return tuple(_settings(model, ()))


def secret_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Dotted paths of the settings that are secrets, such as ``sasl.password``."""
    return tuple(secret_owners(model))


@cache
def secret_owners(model: type[BaseModel]) -> Mapping[str, str | None]:
    """Dotted paths of the secrets, to the settings of the same object that they belong to."""
    found: dict[str, str | None] = {}
    for one in settings_of(model):
        secret = one.find(Secret)
        if secret is not None:
            found[one.dotted] = secret.of
    return found


@cache
def secret_addresses(model: type[BaseModel]) -> Mapping[str, Any]:
    """Dotted paths of the settings that decide who receives secrets, to their defaults."""
    found = (one for one in settings_of(model) if one.find(Receives))
    return {one.dotted: None if one.field.is_required() else one.field.default for one in found}


def _settings(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[Setting]:
    keys = model.sql_keys if issubclass(model, StoreSettings) else {}
    for name, field in model.model_fields.items():
        part = part_of(field)
        if part is not None:
            yield from _settings(part, (*path, name))
        else:
            sql = mark(field, Sql)
            yield Setting((*path, name), field, keys.get(name) or (sql.key if sql else None))
