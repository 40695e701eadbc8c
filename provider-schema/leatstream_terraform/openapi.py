"""Reads JSON schemas out of an OpenAPI document, references followed."""

from __future__ import annotations

from typing import Any

#: The extension that says what OpenAPI cannot.
HINT = "x-terraform"


def resolve(openapi: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Follow references and drop "or null"; what stands beside a reference wins over what it names."""
    while True:
        beside = {
            key: value for key, value in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")
        }
        if "$ref" in schema:
            target: Any = openapi
            for step in schema["$ref"].removeprefix("#/").split("/"):
                target = target[step.replace("~1", "/").replace("~0", "~")]
            schema = _beside(target, beside)
            continue
        for word in ("allOf", "anyOf", "oneOf"):
            options = [one for one in schema.get(word, ()) if one.get("type") != "null"]
            if len(options) == 1:
                schema = _beside(options[0], beside)
                break
            if options and all(_enum(openapi, one) for one in options):
                return beside | {
                    "type": "string",
                    "enum": [v for one in options for v in _enum(openapi, one)],
                }
        else:
            return _narrow(schema)


def _beside(target: dict[str, Any], beside: dict[str, Any]) -> dict[str, Any]:
    merged = target | {key: value for key, value in beside.items() if key != "title"}
    if HINT in target and HINT in beside:
        merged[HINT] = target[HINT] | beside[HINT]
    return merged


def _enum(openapi: dict[str, Any], schema: dict[str, Any]) -> list[Any]:
    one = resolve(openapi, schema)
    return [one["const"]] if "const" in one else list(one.get("enum", ()))


def _narrow(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        left = [kind for kind in kinds if kind != "null"]
        schema = schema | {"type": left[0] if len(left) == 1 else "any"}
    if "const" in schema:
        schema = schema | {"enum": [schema["const"]], "type": schema.get("type", "string")}
    return schema


def content(openapi: dict[str, Any], holder: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of a request body or response, not resolved yet; empty when it has none."""
    holder = resolve(openapi, holder)
    schema: dict[str, Any] = holder.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def success(operation: dict[str, Any]) -> dict[str, Any]:
    """The response of an operation that went well."""
    responses = operation.get("responses", {})
    found: dict[str, Any] = responses.get("200") or responses.get("201") or {}
    return found
