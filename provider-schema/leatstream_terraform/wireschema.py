"""The provider's schema as protocol messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leatstream_terraform.protocol import Protocol
from leatstream_terraform.schema import Attribute, ProviderSchema, Resource

_NESTING = {"single": 1, "list": 2, "map": 4}
_MARKDOWN = 1


def schema_message(
    protocol: Protocol, attributes: Mapping[str, Attribute], text: str, version: int = 0
) -> Any:
    """A ``Schema`` with one block of these attributes."""
    result = protocol.message("tfplugin6.Schema")(version=version)
    result.block.version = version
    result.block.description = text
    result.block.description_kind = _MARKDOWN
    for item in attributes.values():
        _fill(result.block.attributes.add(), item)
    return result


def _fill(message: Any, item: Attribute) -> None:
    message.name = item.name
    message.description = item.description
    message.description_kind = _MARKDOWN
    message.required = item.mode == "required"
    message.optional = item.mode in ("optional", "optional_computed")
    message.computed = item.computed
    message.sensitive = item.sensitive
    message.write_only = item.write_only
    if item.nesting is None:
        message.type = json.dumps(item.type).encode()
        return
    message.nested_type.nesting = _NESTING[item.nesting]
    for child in item.attributes.values():
        _fill(message.nested_type.attributes.add(), child)


def identity_message(protocol: Protocol, resource: Resource) -> Any:
    """The identity of a resource: the names that find it."""
    result = protocol.message("tfplugin6.ResourceIdentitySchema")(version=0)
    for name in resource.key:
        item = resource.attributes[name]
        result.identity_attributes.add(
            name=name,
            type=b'"string"',
            required_for_import=item.mode == "required",
            optional_for_import=item.mode != "required",
            description=item.description,
        )
    return result


def function_message(protocol: Protocol, function: Mapping[str, Any]) -> Any:
    """A provider function."""
    result = protocol.message("tfplugin6.Function")(
        summary=function["summary"], description=function["description"], description_kind=_MARKDOWN
    )
    for parameter in function["parameters"]:
        result.parameters.add(name=parameter["name"], type=b'"string"', description=parameter["description"])
    # `return` is a Python keyword.
    getattr(result, "return").type = b'"string"'
    return result


def all_schemas(protocol: Protocol, schema: ProviderSchema) -> Any:
    """The answer to GetProviderSchema."""
    result = protocol.message("tfplugin6.GetProviderSchema.Response")()
    result.provider.CopyFrom(schema_message(protocol, schema.provider, "Streaming SQL over your own stores."))
    result.provider_meta.CopyFrom(schema_message(protocol, {}, ""))
    for name, resource in schema.resources.items():
        message = schema_message(protocol, resource.attributes, resource.description, resource.version)
        result.resource_schemas[name].CopyFrom(message)
    for name, resource in schema.data_sources.items():
        message = schema_message(protocol, resource.attributes, resource.description)
        result.data_source_schemas[name].CopyFrom(message)
    for name, resource in schema.ephemerals.items():
        message = schema_message(protocol, resource.attributes, resource.description)
        result.ephemeral_resource_schemas[name].CopyFrom(message)
    for name, function in schema.functions.items():
        result.functions[name].CopyFrom(function_message(protocol, function))
    capabilities(result.server_capabilities)
    return result


def capabilities(message: Any) -> None:
    """Say what the server can do."""
    message.get_provider_schema_optional = True
    message.plan_destroy = True
    message.move_resource_state = True
