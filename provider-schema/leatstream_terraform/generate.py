"""Writes ``provider.json`` from the OpenAPI document.

A request body's schema with an ``x-terraform`` object that names a ``resource`` becomes a resource; hints on
single properties say what OpenAPI cannot. All hints are described in ``provider-schema/README.md``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leatstream_terraform.openapi import HINT, content, resolve, success
from leatstream_terraform.schema import FORMAT

_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "bool"}
_COPIED = (
    "replace",
    "volatile",
    "semantic",
    "template",
    "infer",
    "sensitive",
    "trigger",
    "provider_only",
    "preview",
    "default_from",
    "unmanaged",
    "kept",
)
_RESOURCE = (
    "wait",
    "warn",
    "assume",
    "delete_query",
    "exactly_one_of",
    "constants",
    "live",
    "version",
    "shared",
    "excludes",
    "create",
    "rotates",
    "ephemeral",
)

PROVIDER: dict[str, Any] = {
    "attributes": {
        "url": {
            "type": "string",
            "mode": "optional",
            "description": "Address of the service; default: environment variable `LEATSTREAM_URL`.",
        },
        "token": {
            "type": "string",
            "mode": "optional",
            "sensitive": True,
            "description": "API token; default: environment variable `LEATSTREAM_TOKEN`.",
        },
    }
}
FUNCTIONS: dict[str, Any] = {
    "fqn": {
        "summary": "Full name of a relation",
        "description": "Joins database, schema and name with dots, each quoted where needed, for use in "
        "SQL text.",
        "parameters": [
            {"name": "database", "description": "Name of the database, exact."},
            {"name": "schema", "description": "Name of the schema, exact."},
            {"name": "name", "description": "Name of the relation, exact."},
        ],
    },
    "quote_ident": {
        "summary": "Quote a name for SQL",
        "description": "Writes a name so that SQL reads it back as itself: plain where possible, else in "
        "double quotes.",
        "parameters": [{"name": "name", "description": "The exact name."}],
    },
}


def generate(openapi: dict[str, Any]) -> dict[str, Any]:
    """Make the provider's schema from the service's contract.

    Args:
        openapi: OpenAPI 3.1 document with ``x-terraform`` hints.

    Returns:
        The document for ``provider.json``; ``dumps`` writes it.

    Raises:
        ValueError: a hint is missing or names something that is not there.
    """
    resources = {}
    for path, operations in sorted(openapi.get("paths", {}).items()):
        for method in ("put", "post"):
            operation = operations.get(method, {})
            schema = resolve(openapi, content(openapi, operation.get("requestBody", {})))
            hint = schema.get(HINT, {})
            if hint.get("create", "PUT") != method.upper():
                continue
            for one in [hint, *(hint | variant for variant in hint.get("variants", ()))]:
                if "resource" in one:
                    resources[one["resource"]] = _resource(openapi, path, operation, schema, one)
    if not resources:
        raise ValueError(f"no PUT body of the OpenAPI document has an {HINT} hint with a resource name")
    return {"format": FORMAT, "provider": PROVIDER, "functions": FUNCTIONS, "resources": resources}


def dumps(document: dict[str, Any]) -> str:
    """The text of ``provider.json``: the same for the same document, whatever its order."""
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _resource(
    openapi: dict[str, Any],
    path: str,
    operation: dict[str, Any],
    schema: dict[str, Any],
    hint: dict[str, Any],
) -> dict[str, Any]:
    for needed in ("path", "key", "import", "path_attributes"):
        if needed not in hint:
            raise ValueError(f"{HINT} of PUT {path} lacks {needed!r}")
    reader = _Reader(openapi, hint.get("attributes", {}), {*hint.get("omit", ()), *hint.get("constants", {})})
    attributes = {name: _path_attribute(one, "required") for name, one in hint["path_attributes"].items()}
    attributes |= {name: _path_attribute(one, "optional") for name, one in hint.get("path_query", {}).items()}
    attributes |= reader.body(schema, ())
    answer = resolve(openapi, content(openapi, success(operation)))
    written = {item.get("rest", name) for name, item in attributes.items()}
    for name, one in answer.get("properties", {}).items():
        if name not in written and name not in reader.omit and f"{name}_wo" not in attributes:
            computed = reader.computed(name, one, (name,))
            if computed is not None:
                attributes[name] = computed
    if hint.get("timeouts"):
        attributes["timeouts"] = timeouts(hint["timeouts"])
    if hint.get("change"):
        attributes["change"] = CHANGE
    if hint.get("rotates"):
        attributes |= ROTATION
    unknown = [one for one in hint.get("attributes", {}) if one not in reader.seen]
    if unknown:
        raise ValueError(
            f"{HINT} of PUT {path} has hints for {', '.join(unknown)}, which the schemas do not have"
        )
    return {
        "description": hint.get("description") or schema.get("description", ""),
        "path": hint["path"],
        "key": list(hint["key"]),
        "import": hint["import"],
        "data_source": hint.get("data_source", True),
        **{name: hint[name] for name in _RESOURCE if name in hint},
        "attributes": attributes,
    }


def _path_attribute(one: str | Mapping[str, Any], mode: str) -> dict[str, Any]:
    """An attribute in the path, from its description, or from that and its possible values."""
    more = {"description": one} if isinstance(one, str) else dict(one)
    return {"type": "string", "mode": mode, "path": True, "replace": True, **more}


#: What the last update did to the job; the provider keeps it, so that policies find it in the plan.
CHANGE: dict[str, Any] = {
    "nesting": "single",
    "mode": "computed",
    "provider_only": True,
    "semantic": "change",
    "description": "What the last update does to the running job, known at plan; null before the first.",
    "attributes": {
        "class": {
            "type": "string",
            "mode": "computed",
            "description": "none, hot, restart-keep-state, restart-from-offsets, new-state, blue-green or "
            "start-again (of a job that failed).",
        },
        "reason": {"type": "string", "mode": "computed", "description": "Why, one sentence."},
    },
}


#: When the service makes a new value of the object; the provider keeps it.
ROTATION: dict[str, Any] = {
    "rotate_when": {
        "type": "string",
        "mode": "optional",
        "provider_only": True,
        "trigger": True,
        "description": "Change it to have a new value made, for example to the `id` of a `time_rotating`.",
    },
    "grace_minutes": {
        "type": "number",
        "mode": "optional",
        "provider_only": True,
        "description": "Minutes that the old value is accepted after a rotation; default 1440, a day.",
    },
}


def timeouts(phases: list[str]) -> dict[str, Any]:
    """The ``timeouts`` attribute: write-only, as it is no part of the object: no import differs in it."""
    return {
        "nesting": "single",
        "mode": "optional",
        "provider_only": True,
        "write_only": True,
        "description": 'How long to wait, such as `"30s"` or `"10m"`; default 10 minutes. Never stored, so a '
        "change is no difference; `delete` counts from the next change that is applied.",
        "attributes": {
            phase: {
                "type": "string",
                "mode": "optional",
                "provider_only": True,
                "write_only": True,
                "semantic": "duration",
                "description": f"Time for {phase}.",
            }
            for phase in phases
        },
    }


class _Reader:
    """Turns JSON schemas of one resource into attributes."""

    def __init__(self, openapi: dict[str, Any], overrides: Mapping[str, Any], omit: set[str]) -> None:
        self.openapi = openapi
        self.overrides = overrides
        self.omit = omit
        self.seen: set[str] = set()

    def _hint(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        dotted = ".".join(path)
        if dotted in self.overrides:
            self.seen.add(dotted)
        return {**schema.get(HINT, {}), **self.overrides.get(dotted, {})}

    def body(self, schema: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        """Attributes of an object that the user writes."""
        result: dict[str, Any] = {}
        required = set(schema.get("required", ()))
        for name, raw in schema.get("properties", {}).items():
            here = (*path, name)
            one = resolve(self.openapi, raw)
            hint = self._hint(one, here)
            if hint.get("omit") or ".".join(here) in self.omit:
                continue
            if one.get("readOnly"):
                computed = self.computed(name, raw, here)
                if computed is not None:
                    result[name] = computed
                continue
            item = self._shape(one, here, self.body) | _copied(one, hint)
            item["mode"] = hint.get("mode") or ("required" if name in required else "optional")
            if hint.get("unmanaged"):
                item["mode"] = "optional_computed"
            if one.get("default") is not None and item["mode"] != "required" and hint.get("default", True):
                item |= {"mode": "optional_computed", "default": one["default"]}
            if one.get("writeOnly"):
                result |= _write_only(name, item)
            else:
                result[hint.get("name", name)] = item | ({"rest": name} if "name" in hint else {})
        return result

    def computed(self, name: str, raw: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
        """An attribute that only the service gives, or None when a hint leaves it out."""
        one = resolve(self.openapi, raw)
        hint = self._hint(one, path)
        if hint.get("omit") or ".".join(path) in self.omit or one.get("writeOnly"):
            return None
        item = self._shape(one, path, self._computed_children) | _copied(one, hint)
        for hint_name in ("enum", "pattern", "example"):
            item.pop(hint_name, None)
        return item | {"mode": "computed"}

    def _computed_children(self, schema: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        found = {
            name: self.computed(name, raw, (*path, name))
            for name, raw in schema.get("properties", {}).items()
        }
        return {name: item for name, item in found.items() if item is not None}

    def _shape(self, one: dict[str, Any], path: tuple[str, ...], children: Any) -> dict[str, Any]:
        kind = one.get("type")
        if kind == "object" and one.get("properties"):
            return {"nesting": "single", "attributes": children(one, path)}
        if kind == "object" and isinstance(one.get("additionalProperties"), dict):
            inner = resolve(self.openapi, one["additionalProperties"])
            if inner.get("type") == "object" and inner.get("properties"):
                return {"nesting": "map", "attributes": children(inner, path)}
            return {"type": ["map", _SCALARS.get(str(inner.get("type")), "string")]}
        if kind == "array":
            inner = resolve(self.openapi, one.get("items", {}))
            if inner.get("type") == "object" and inner.get("properties"):
                return {"nesting": "list", "attributes": children(inner, path)}
            return {"type": ["list", _SCALARS.get(str(inner.get("type")), "string")]}
        # A value of several types (a property may be text or number) and a free object both become text.
        return {"type": _SCALARS.get(str(kind), "string")}


def _write_only(name: str, item: dict[str, Any]) -> dict[str, Any]:
    text = item.get("description", "")
    secret = item | {
        "rest": name,
        "write_only": True,
        "description": f"{text} Write-only: sent to the service, never stored in the state. It is sent with "
        f"every change of the object; to send a new value alone, change `{name}_wo_version`.".strip(),
    }
    version = {
        "type": "number",
        "mode": "optional",
        "provider_only": True,
        "trigger": True,
        "description": f"Change it to send `{name}_wo` again, for example after a rotation.",
    }
    return {f"{name}_wo": secret, f"{name}_wo_version": version}


def _copied(one: Mapping[str, Any], hint: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"description": hint.get("description") or one.get("description", "")}
    result |= {name: hint[name] for name in _COPIED if name in hint}
    if "enum" in one:
        result["enum"] = [value for value in one["enum"] if value is not None]
    if "pattern" in one and hint.get("pattern", True):
        result["pattern"] = one["pattern"]
        if one.get("examples"):
            result["example"] = one["examples"][0]
    if "exactly_one_of" in hint:
        result["exactly_one_of"] = list(hint["exactly_one_of"])
    return result


def main(arguments: list[str]) -> int:
    """Write ``provider.json`` and the package's copies; the argument is the path of ``openapi.yaml``."""
    import yaml

    from leatstream_terraform.artefacts import write_schema

    path = Path(arguments[0] if arguments else "openapi.yaml")
    write_schema(yaml.safe_load(path.read_text(encoding="utf-8")), path.resolve().parent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
