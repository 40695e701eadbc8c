"""Exported objects as Terraform configuration, by the models that give the provider its schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from leatstream.model.functions import JAVA
from leatstream.model.names import quote
from leatstream.rest.hcl import Address, Expression, FileContent, InputVariable, NameOf, block, multiline
from leatstream.rest.schemas import (
    access,
    accounts,
    applications,
    databases,
    functions,
    queries,
    registered,
    relations,
    stores,
)
from leatstream.services.export.ddl import named_value_format
from leatstream.services.export.objects import Exported, Ref
from leatstream.services.export.script import Export, ExportedFile, file_path, identifier
from leatstream.services.nouns.external_ids import without_generated
from leatstream.sql.canonical import canonical

_HEAD = """terraform {
  required_version = ">= 1.11"
  required_providers {
    leatstream = {
      source = "leatstream.dev/leatstream/leatstream"
    }
  }
}
"""
_HOLDER = re.compile(r"\{(\w+)\}")
# Attributes that name another object, to its kind.
_NAMES = {
    "database": "database",
    "schema": "schema",
    "store": "store",
    "schema_registry": "schema_registry",
    "source": "function_source",
    "roles": "role",
    "inherits": "role",
    "default_role": "role",
}
_KINDS: Mapping[str, tuple[type[BaseModel], Callable[[Any], BaseModel]]] = {
    "secret": (registered.SecretBody, registered.SecretView.from_domain),
    "schema_registry": (registered.SchemaRegistryBody, registered.SchemaRegistryView.from_domain),
    "descriptor_source": (registered.DescriptorSourceBody, registered.DescriptorSourceView.from_domain),
    "store": (
        stores.StoreBody,
        lambda item: stores.StoreView.from_domain(replace(item, config=without_generated(item))),
    ),
    "database": (databases.DatabaseBody, databases.DatabaseView.from_domain),
    "schema": (databases.SchemaBody, databases.SchemaView.from_domain),
    "function_source": (functions.FunctionSourceBody, functions.FunctionSourceView.from_domain),
    "function": (functions.FunctionBody, functions.FunctionView.from_domain),
    "relation": (relations.RelationBody, relations.RelationView.from_domain),
    "query": (queries.QueryBody, lambda item: queries.QueryView.from_domain(item, canonical(item.sql))),
    "application": (applications.ApplicationBody, applications.ApplicationView.from_domain),
    "role": (access.RoleBody, access.RoleView.from_domain),
    "user": (accounts.UserBody, accounts.AccountView.from_domain),
    "service_account": (accounts.ServiceAccountBody, accounts.AccountView.from_domain),
}


def terraform_configuration(objects: Sequence[Exported]) -> Export:
    """``main.tf`` with the resources, ``imports.tf``, and ``variables.tf`` where there are secret values.

    Args:
        objects: each after what it needs.
    """
    made = Export()
    writer = ResourceWriter(made, objects)
    resources = [
        block('resource "{}" "{}"'.format(*address.split(".")), body)
        for address, body in writer.resources(objects)
    ]
    imports = [block("import", {"to": address, "id": id_}) for address, id_ in writer.imports()]
    notes = "".join(f"# {note}\n" for note in made.notes)
    main = "\n".join([notes + _HEAD, *resources])
    files = [ExportedFile("main.tf", main), ExportedFile("imports.tf", "\n".join(imports))]
    if made.variables:
        files.append(ExportedFile("variables.tf", "\n".join(_variables(made.variables))))
    made.files[:0] = files
    return made


def describe_variable(what: str) -> str:
    """The description of the variable for a secret value."""
    return f"{what[0].upper()}{what[1:]}; null = the stored value stays."


def _variables(found: Mapping[str, str]) -> Iterator[str]:
    for name, what in found.items():
        body = {
            "description": describe_variable(what),
            "type": Expression("string"),
            # Not sensitive: Terraform would take the mark for a change. An ephemeral value is shown nowhere.
            "ephemeral": True,
            "default": Expression("null"),
        }
        yield block(f'variable "{name}"', body)


@dataclass(slots=True)
class _Resource:
    """One resource while it is written."""

    one: Exported
    hints: dict[str, Any]
    view: dict[str, Any]
    used: set[Ref] = field(default_factory=set)


class ResourceWriter:
    """The attributes of resources, which refer to each other by addresses."""

    def __init__(self, made: Export, objects: Sequence[Exported]) -> None:
        """Give each object its address.

        Args:
            made: where variables, notes and files are noted.
            objects: each after what it needs.
        """
        self._made = made
        self._hints = {one.ref: _hints(one) for one in objects}
        self._views = {one.ref: _view(one) for one in objects}
        self._addresses: dict[Ref, str] = {}
        # What each resource needs, at whatever distance; filled in the order of the objects.
        self._reached: dict[Ref, set[Ref]] = {}
        taken: set[str] = set()
        for one in objects:
            address = self._address(one.ref, taken)
            taken.add(address)
            self._addresses[one.ref] = address

    def _address(self, ref: Ref, taken: set[str]) -> str:
        """Type and name; a relation's place is part of the name where its own is taken."""
        kind = self._hints[ref]["resource"]
        short, long = identifier(self._views[ref]["name"]), identifier(ref.name)
        choices = [short, long, *(f"{long}_{number}" for number in range(2, len(self._hints) + 2))]
        return next(found for found in (f"{kind}.{name}" for name in choices) if found not in taken)

    def imports(self) -> Iterator[tuple[Address, str]]:
        """Address and import id of each resource."""
        for ref, address in self._addresses.items():
            template, view = str(self._hints[ref]["import"]), self._views[ref]
            parts = {name: quote(str(view[name])) for name in _HOLDER.findall(template)}
            yield Address(address), template.format(**parts)

    def resources(self, objects: Sequence[Exported]) -> Iterator[tuple[Address, dict[str, Any]]]:
        """Address and attributes of each object, in this order."""
        for one in objects:
            yield Address(self._addresses[one.ref]), self._body(one)

    def _body(self, one: Exported) -> dict[str, Any]:
        found = _Resource(one, self._hints[one.ref], self._views[one.ref])
        body = {name: self._linked(found, name, found.view[name]) for name in found.hints["key"]}
        body |= self._attributes(found, _KINDS[one.ref.kind][0], found.view, ())
        body |= self._files(one)
        missing = sorted(self._addresses[ref] for ref in self._unsaid(one, found.used))
        body["depends_on"] = [Address(address) for address in missing] or None
        if any(sink.indexes for sink in one.sinks.values()):
            self._made.notes.append(f"Terraform has no resource for the indexes of {one.ref}.")
        return body

    def _unsaid(self, one: Exported, used: set[Ref]) -> Iterator[Ref]:
        """What it needs and neither refers to nor needs by way of something else."""
        needs = [ref for ref in one.needs if ref in self._addresses]
        implied = {ref for need in needs for ref in self._reached[need]}
        self._reached[one.ref] = {*needs, *implied}
        return (ref for ref in needs if ref not in used and ref not in implied)

    def _attributes(
        self, found: _Resource, model: type[BaseModel], values: Mapping[str, Any], path: tuple[str, ...]
    ) -> dict[str, Any]:
        """What was written of an object, or of a part of it; what has its default is left out."""
        skipped = {*found.hints.get("omit", ()), *found.hints.get("constants", ())} if not path else set()
        body: dict[str, Any] = {}
        for member, info in model.model_fields.items():
            name = info.alias or member
            value = values.get(name)
            if _is_secret(info):
                if self._holds(found, ".".join((*path, name))):
                    body[f"{name}_wo"] = self._variable(found, (*path, name))
            elif name in skipped or value is None or value in ([], {}) or value == info.default:
                continue
            else:
                body[name] = self._member(found, (*path, name), info, value)
        return body

    def _member(self, found: _Resource, path: tuple[str, ...], info: FieldInfo, value: Any) -> Any:
        part = _part(info.annotation)
        if part is not None and isinstance(value, Mapping):
            return self._attributes(found, part, value, path)
        if part is not None:
            return [self._attributes(found, part, item, path) for item in value]
        if path == ("sql",):
            return multiline(value.strip(), "SQL")
        return self._linked(found, path[-1], value)

    def _linked(self, found: _Resource, name: str, value: Any) -> Any:
        """A reference in place of the name of another resource."""
        if name in found.hints["path_attributes"] and name == found.hints["key"][-1]:
            return value
        kind = "secret" if name.endswith("_secret") else _NAMES.get(name)
        if kind is None:
            return value
        if isinstance(value, list):
            return [self._reference(found, kind, item) for item in value]
        return self._reference(found, kind, value)

    def _reference(self, found: _Resource, kind: str, name: str) -> Any:
        database = found.view.get("database")
        if kind == "schema" and database is None:
            return name
        ref = Ref(kind, f"{quote(database)}.{quote(name)}" if kind == "schema" and database else quote(name))
        if ref not in self._addresses or ref == found.one.ref:
            return name
        found.used.add(ref)
        return NameOf(f"{self._addresses[ref]}.name")

    def _holds(self, found: _Resource, path: str) -> bool:
        """Whether a value is stored here that has no name of its own."""
        item = found.one.item
        if found.one.ref.kind == "secret":
            return item.outside is None
        path = path.removeprefix(f"{getattr(item, 'kind', '')}.")
        return path in getattr(item, "secrets", {}) and path not in item.secret_names

    def _variable(self, found: _Resource, path: tuple[str, ...]) -> InputVariable:
        ref = found.one.ref
        leaf = ".".join(path[1:] if ref.kind == "store" else path)
        what = f"the {leaf} of {ref.kind.replace('_', ' ')} {ref.name}"
        return InputVariable(f"var.{self._made.variable(ref.kind, found.view['name'], leaf, what=what)}")

    def _files(self, one: Exported) -> dict[str, Any]:
        """Attributes that are kept in files of their own."""
        if one.ref.kind == "function_source":
            path = file_path("functions", one.item.name, one.item.file)
            binary, name, content = one.item.language == JAVA, "content", one.item.content
        elif one.ref.kind == "descriptor_source":
            path = file_path("descriptors", one.item.name, "messages.desc")
            binary, name, content = True, "descriptor_set", one.item.descriptor_set
        else:
            return {}
        self._made.files.append(ExportedFile(path, content, binary))
        return {name: FileContent.of(path, binary=binary)}


def _hints(one: Exported) -> dict[str, Any]:
    """The provider's hints for the resource that an object is."""
    extra = cast("dict[str, Any]", _KINDS[one.ref.kind][0].model_config["json_schema_extra"])
    hints: dict[str, Any] = extra["x-terraform"]
    kind = getattr(one.item, "kind", None)
    for variant in hints.get("variants", ()):
        if variant["constants"]["kind"] == kind:
            return {**hints, **variant}
    return hints


def _view(one: Exported) -> dict[str, Any]:
    """An object as REST shows it; a format that was not given is left out, though the server names one."""
    found = _KINDS[one.ref.kind][1](one.item).model_dump(mode="json", by_alias=True)
    return found | {"value_format": named_value_format(one.item)} if one.ref.kind == "relation" else found


def _is_secret(info: FieldInfo) -> bool:
    extra = info.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("writeOnly"))


def _part(annotation: Any) -> type[BaseModel] | None:
    """The model of a member that is an object, or a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for one in get_args(annotation) if (found := _part(one)) is not None), None)
