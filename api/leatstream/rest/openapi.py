"""The OpenAPI document: FastAPI's, mended where it differs from what the service does."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from leatstream.rest.answers import TEXTS
from leatstream.rest.needs import CHANGES, OPERATIONS
from leatstream.rest.problem import MEDIA_TYPE
from leatstream.rest.streams import EVENTS, NDJSON

ABOUT: dict[str, Any] = {
    "summary": "Streaming SQL over your own stores, deployed as code.",
    "description": "Names fold to lower case unless they stand in double quotes. `PUT` creates or replaces; "
    "an unchanged body makes no new generation. Errors are problem documents (RFC 9457) with stable codes.",
    "license_info": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "servers": [{"url": "http://127.0.0.1:8585", "description": "leat dev on this machine"}],
    "openapi_tags": [
        {"name": "databases", "description": "Logical groupings of schemas."},
        {"name": "schemas", "description": "Namespaces of relations inside a database."},
        {"name": "secrets", "description": "Values that stores and schema registries use and nobody reads."},
        {"name": "schema-registries", "description": "Where schemas of records are kept."},
        {"name": "descriptor-sources", "description": "Compiled sets of protobuf message types."},
        {"name": "stores", "description": "Connectivity and access to systems of yours."},
        {"name": "entities", "description": "Topics and the like, which live in your stores; read live."},
        {"name": "relations", "description": "Relational faces of entities: streams so far."},
        {"name": "queries", "description": "Continuous statements, with a PySpark job each."},
        {"name": "function-sources", "description": "Files with functions in Python."},
        {"name": "functions", "description": "Users' functions, made of function sources."},
        {"name": "applications", "description": "Queries that are made together and go together."},
        {
            "name": "savepoints",
            "description": "Copies of checkpoints that new queries can begin with.",
        },
        {"name": "statements", "description": "SQL text: run it, or check it."},
        {
            "name": "catalog",
            "description": "The whole catalog: as code, what flows where, what changes.",
        },
        {"name": "access", "description": "Who may do what: roles, accounts, tokens, the audit log."},
        {"name": "server", "description": "The server itself: version, health, metrics."},
    ],
}
_STREAMS = {"read_records": "One record a line.", "follow_events": "One change a line."}
_EVENT = {
    "type": "object",
    "description": "A server-sent event; its `data` is a JSON document.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
}
_OPEN = ("/healthz", "/readyz", "/problems/{code}", "/v1/sign-in", "/v1/session")
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
# What may follow a PUT with the same names; published as OpenAPI links.
_AFTER: dict[str, tuple[str, ...]] = {
    "put_database": ("get_database", "put_schema", "list_schemas", "delete_database"),
    "put_schema": ("get_schema", "delete_schema"),
    "put_secret": ("get_secret", "apply_secret", "delete_secret"),
    "put_schema_registry": ("get_schema_registry", "delete_schema_registry"),
    "put_descriptor_source": ("get_descriptor_source", "delete_descriptor_source"),
    "put_store": ("get_store", "test_store", "put_entity", "list_entities", "delete_store"),
    "put_entity": ("get_entity", "read_records", "delete_entity"),
    "put_relation": ("get_relation", "delete_relation"),
    "put_query": ("get_query", "patch_query", "get_query_logs", "restart_query", "delete_query"),
}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the application."""
    raw = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
        servers=app.servers,
        license_info=app.license_info,
        separate_input_output_schemas=False,
    )
    schemas = raw["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    raw["components"]["securitySchemes"] = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "`leat_<id>_<secret>`, as in the file that `leat dev` prints.",
        }
    }
    raw["components"]["headers"] = {
        "ETag": {"description": "The object's generation in double quotes.", "schema": {"type": "string"}},
        "Location": {"description": "Path of the new object.", "schema": {"type": "string"}},
        "RequestId": {"description": "Id of this request.", "schema": {"type": "string"}},
    }
    raw["components"]["responses"] = {
        f"Problem{status}": {
            "description": text,
            "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
            "content": {MEDIA_TYPE: {"schema": _PROBLEM}},
        }
        for status, text in TEXTS.items()
    }
    raw["security"] = [{"bearer": []}]
    for path, operations in raw["paths"].items():
        for operation in operations.values():
            _mend_operation(path, operation)
    _link(raw["paths"])
    _mend_tree(raw)
    return raw


def _link(paths: dict[str, Any]) -> None:
    operations = {one["operationId"]: one for item in paths.values() for one in item.values()}

    def names(operation_id: str) -> list[str]:
        parameters = operations[operation_id].get("parameters", ())
        return [one["name"] for one in parameters if one["in"] == "path"]

    for source, targets in _AFTER.items():
        known = names(source)
        links = {
            target: {
                "operationId": target,
                "parameters": {n: f"$request.path.{n}" for n in names(target) if n in known},
            }
            for target in targets
        }
        for status in ("200", "201"):
            operations[source]["responses"][status]["links"] = links


def _mend_operation(path: str, operation: dict[str, Any]) -> None:
    if path in _OPEN:
        operation["security"] = []
    operation.get("summary") and operation.pop("summary")
    description = operation.get("description", "")
    operation["summary"] = description.split(". ")[0].split("; ")[0].rstrip(".").split("\n")[0][:120]
    for parameter in operation.get("parameters", ()):
        _drop_null(parameter["schema"])
    responses = operation["responses"]
    for status in responses:
        if int(status) >= 400 and path != "/readyz":
            responses[status] = {"$ref": f"#/components/responses/Problem{status}"}
    if path in _OPEN and "422" in responses and operation["operationId"] != "get_problem_type":
        del responses["422"]
    if operation["operationId"] in _STREAMS:
        schema = responses["200"]["content"].pop("application/json", {"schema": {}})["schema"]
        line = {"type": "string", "description": _STREAMS[operation["operationId"]]}
        responses["200"]["content"] = {
            NDJSON: {"schema": line, "x-item-schema": schema},
            EVENTS: {"schema": _EVENT},
        }
    if operation["operationId"] == "get_metrics":
        responses["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    if operation["operationId"] == "patch_query":
        body = operation["requestBody"]["content"]
        body["application/merge-patch+json"] = body["application/json"]
    if operation["operationId"] in OPERATIONS:
        operation["x-access"] = x_access(operation["operationId"])
    _mend_headers(path, operation)


def x_access(operation: str) -> dict[str, Any]:
    """What an operation needs; a PUT that may change an object has both."""
    needs, change = OPERATIONS[operation].as_json(), CHANGES.get(operation)
    return needs if change is None else {**needs, "change": change.as_json()}


def _drop_null(schema: dict[str, Any]) -> None:
    """A parameter is present or not; it cannot be null, whatever its Python type says."""
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(options) == 1:
        del schema["anyOf"]
        schema.update(options[0])


def _mend_headers(path: str, operation: dict[str, Any]) -> None:
    for status, response in operation["responses"].items():
        if "$ref" in response:
            continue
        headers = response.setdefault("headers", {})
        headers["X-Request-Id"] = {"$ref": "#/components/headers/RequestId"}
        single = path.rstrip("}").endswith(("{database", "{schema", "{store", "{relation", "{query"))
        if status in ("200", "201") and single:
            headers["ETag"] = {"$ref": "#/components/headers/ETag"}
        if status == "201":
            headers["Location"] = {"$ref": "#/components/headers/Location"}


def _mend_tree(node: Any) -> None:
    """Rename what belongs to OpenAPI 3.2, in place; the document says 3.1."""
    if isinstance(node, dict):
        if "itemSchema" in node:
            node["x-item-schema"] = node.pop("itemSchema")
        for value in node.values():
            _mend_tree(value)
    elif isinstance(node, list):
        for value in node:
            _mend_tree(value)


def install(app: FastAPI) -> None:
    """Make the application serve this document."""

    def cached() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = document(app)
        return app.openapi_schema

    app.openapi = cached  # type: ignore[method-assign]


def to_yaml(found: dict[str, Any]) -> str:
    """The document as text: the same for the same application."""
    return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=110)


def render_document() -> str:
    """The document of this version as YAML, as ``openapi.yaml`` holds it; needs no catalog."""
    from leatstream.rest.app import create_app
    from leatstream.services.environment import Environment

    nowhere = Environment.__new__(Environment)
    return to_yaml(create_app(nowhere).openapi())
